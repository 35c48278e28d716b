// Finds the heap of device code's malloc. The driver does not report it, so a kernel allocates a few bytes.
#pragma once

#include <mutex>
#include <optional>

#include "device/core.hpp"
#include "warmgraph/backends/address.hpp"

namespace warmgraph::backends::cuda {

/// Thread-safe. The heap belongs to the context and does not move.
class DeviceHeap {
public:
    explicit DeviceHeap(const Core& core) noexcept : m_core(core) {}
    DeviceHeap(const DeviceHeap&) = delete;
    DeviceHeap& operator=(const DeviceHeap&) = delete;
    ~DeviceHeap();

    /// Returns a range that contains the heap: the heap's size on both sides of an address in it. Runs a kernel and
    /// waits for its end; at the first call the driver also compiles this kernel.
    [[nodiscard]] Result<MemoryRef> find();

private:
    [[nodiscard]] Result<void> load();
    [[nodiscard]] Result<std::uint64_t> ask();

    const Core& m_core;
    std::mutex m_mutex; // guards the members below
    CUmodule m_module = nullptr;
    std::optional<MemoryRef> m_known;
};

} // namespace warmgraph::backends::cuda
