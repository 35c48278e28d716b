// Page-locked host memory at far addresses: what stands for the caller's in a capture.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "device/core.hpp"
#include "device/far_addresses.hpp"

namespace warmgraph::backends::cuda {

/// Thread-safe. It is memory like any other: cuMemHostAlloc takes no address, so the process maps it and the driver registers it.
class HostShadows {
public:
    explicit HostShadows(Core& core) noexcept : m_core(core) {}
    HostShadows(const HostShadows&) = delete;
    HostShadows& operator=(const HostShadows&) = delete;
    ~HostShadows() = default; ///< REQUIRES: all were released

    /// The start of at least `size` bytes. out_of_memory where the system gives none.
    [[nodiscard]] Result<std::uint64_t> reserve(std::uint64_t size);
    /// The memory is given back even where the driver complains.
    [[nodiscard]] Result<void> release(std::uint64_t start);

private:
    struct Shadow {
        std::uint64_t mapped = 0; ///< bytes
        std::optional<FarPlace> place;
    };
    Core& m_core;
    std::mutex m_mutex;                        // guards m_shadows
    std::map<std::uint64_t, Shadow> m_shadows; ///< by start
};

} // namespace warmgraph::backends::cuda
