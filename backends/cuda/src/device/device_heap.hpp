// Where the heap of device code's malloc lies: the driver does not tell, so a kernel asks it for a few bytes.
#pragma once

#include <mutex>
#include <optional>

#include "device/core.hpp"
#include "warmgraph/backends/address.hpp"

namespace warmgraph::backends::cuda {

/// Thread-safe. The heap is the context's, and stays where it is.
class DeviceHeap {
public:
    explicit DeviceHeap(const Core& core) noexcept : m_core(core) {}
    DeviceHeap(const DeviceHeap&) = delete;
    DeviceHeap& operator=(const DeviceHeap&) = delete;
    ~DeviceHeap();

    /// A range that holds the heap: its size to both sides of an address in it. Blocks while a kernel runs; the first time the
    /// driver compiles it.
    [[nodiscard]] Result<MemoryRef> find();

private:
    [[nodiscard]] Result<void> load();
    [[nodiscard]] Result<std::uint64_t> ask();

    const Core& m_core;
    std::mutex m_mutex; // guards what follows
    CUmodule m_module = nullptr;
    std::optional<MemoryRef> m_known;
};

} // namespace warmgraph::backends::cuda
