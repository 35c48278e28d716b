// Device memory with the contents of constants. Each contents is loaded once for each device, and shared.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::replay {

/// Device memory that nothing writes. It is freed together with its last owner.
class ConstantMemory {
public:
    /// Returns `size` bytes whose SHA-256 is `digest`, at a multiple of `alignment` (a power of two). Calls `contents`
    /// only if the process does not have these contents on that device. Thread-safe. Errors: the errors of `contents`,
    /// out_of_memory, driver_failed; corrupt if the contents have another size.
    [[nodiscard]] static Result<std::shared_ptr<const ConstantMemory>> load(
        const std::shared_ptr<backends::Device>& device, const Digest& digest, std::uint64_t size,
        std::uint32_t alignment, const std::function<Result<Bytes>()>& contents);

    /// Does the same, but the memory is not shared.
    [[nodiscard]] static Result<std::shared_ptr<const ConstantMemory>> load_exclusively(
        const std::shared_ptr<backends::Device>& device, std::uint64_t size, std::uint32_t alignment,
        const std::function<Result<Bytes>()>& contents);

    ConstantMemory(const ConstantMemory&) = delete;
    ConstantMemory& operator=(const ConstantMemory&) = delete;
    ~ConstantMemory() { m_device->release(m_allocated); }

    [[nodiscard]] const MemoryRef& memory() const noexcept { return m_memory; }

private:
    ConstantMemory(std::shared_ptr<backends::Device> device, const MemoryRef& allocated, const MemoryRef& memory)
        : m_device(std::move(device)), m_allocated(allocated), m_memory(memory)
    {
    }
    [[nodiscard]] static Result<std::shared_ptr<const ConstantMemory>> make(
        const std::shared_ptr<backends::Device>& device, std::uint64_t size, std::uint32_t alignment,
        ByteView contents);

    std::shared_ptr<backends::Device> m_device;
    MemoryRef m_allocated; ///< the whole allocation; larger than `m_memory`, so that `m_memory` can be aligned
    MemoryRef m_memory;
};

} // namespace warmgraph::replay
