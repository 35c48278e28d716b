// Page-locked host memory at far addresses. It replaces the caller's memory in a capture.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "device/core.hpp"
#include "device/far_addresses.hpp"

namespace warmgraph::backends::cuda {

/// Thread-safe. The process maps the memory and the driver registers it, because cuMemHostAlloc takes no address.
class HostShadows {
public:
    explicit HostShadows(Core& core) noexcept : m_core(core) {}
    HostShadows(const HostShadows&) = delete;
    HostShadows& operator=(const HostShadows&) = delete;
    ~HostShadows() = default; ///< REQUIRES: all shadows were released

    /// Returns the start of at least `size` bytes. out_of_memory: the system has none.
    [[nodiscard]] Result<std::uint64_t> reserve(std::uint64_t size);
    /// Frees the memory even if the driver reports an error.
    [[nodiscard]] Result<void> release(std::uint64_t start);

private:
    struct Shadow {
        std::uint64_t mapped = 0; ///< bytes
        std::optional<FarPlace> place;
    };
    Core& m_core;
    std::mutex m_mutex;                        // guards m_shadows
    std::map<std::uint64_t, Shadow> m_shadows; ///< shadows by start address
};

} // namespace warmgraph::backends::cuda
