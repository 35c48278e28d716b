// Valid addresses: this device object's own allocations, and all others that the driver knows.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "device/core.hpp"
#include "device/host_shadow.hpp"
#include "device/shadow.hpp"

namespace warmgraph::backends::cuda {

/// The use of an address by work.
enum class Touch : std::uint8_t {
    run,    ///< accesses the memory: shadows are refused
    record, ///< captures, so that no memory is accessed
};

/// Copies between any two pointers that the driver or the host knows; blocks until done. Waits for no other work.
[[nodiscard]] Result<void> transfer(const Core& core, CUdeviceptr to, CUdeviceptr from, std::uint64_t size);

/// Thread-safe.
class Memory {
public:
    explicit Memory(Core& core) noexcept : m_core(core), m_shadows(core), m_host_shadows(core) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory(); ///< frees the remaining memory

    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> allocate_host(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_decoy(std::uint64_t size); ///< a shadow that work may access
    [[nodiscard]] Result<MemoryRef> reserve_host_shadow(std::uint64_t size);
    /// Waits for work that uses the memory (the driver does). For memory of other code it only logs a warning.
    void release(const MemoryRef& memory) noexcept;

    /// Checks that `size` bytes from `address` exist. `what` starts the message.
    [[nodiscard]] Result<void> check(const char* what, const Address& address, std::uint64_t size, Touch touch) const;
    [[nodiscard]] MemorySpace space_of(const Address& address) const noexcept;
    [[nodiscard]] bool is_managed(const Address& address) const noexcept;
    /// True if the address is in our memory, shadows included, or in memory that the driver knows.
    [[nodiscard]] bool is_known(std::uint64_t flat) const noexcept;
    /// Ignores shadows, because nothing may read them.
    [[nodiscard]] std::optional<MemoryRef> allocation_at(std::uint64_t flat) const noexcept;

private:
    enum class Kind : std::uint8_t { device, host, shadow, decoy, host_shadow };
    struct Allocation {
        std::uint64_t size = 0;
        Kind kind = Kind::device;
    };
    struct Range {
        std::uint64_t start = 0, size = 0;
        Kind kind = Kind::device;
    };
    [[nodiscard]] Result<MemoryRef> reserve(std::uint64_t size, Kind kind);
    MemoryRef insert(std::uint64_t start, std::uint64_t size, Kind kind);
    void free(std::uint64_t start, const Allocation& allocation) noexcept;
    /// Our last allocation that starts at or before `flat`; it may end before `flat`.
    [[nodiscard]] std::optional<Range> ours_before(std::uint64_t flat) const;
    [[nodiscard]] std::optional<Range> ask_driver(std::uint64_t flat) const noexcept;

    Core& m_core;
    Shadows m_shadows;
    HostShadows m_host_shadows;
    mutable std::mutex m_mutex; // guards m_allocations
    std::map<std::uint64_t, Allocation> m_allocations;
};

} // namespace warmgraph::backends::cuda
