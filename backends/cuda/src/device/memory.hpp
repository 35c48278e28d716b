// Which addresses there are: this device object's own allocations, and those of everybody else that the driver knows.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>

#include "device/core.hpp"
#include "device/host_shadow.hpp"
#include "device/shadow.hpp"

namespace warmgraph::backends::cuda {

/// What work that names an address does with it now.
enum class Touch : std::uint8_t {
    run,    ///< touches it: shadows are refused
    record, ///< a capture: touches nothing
};

/// Copies between any two pointers that the driver or the host knows; returns when it is done. Waits for no other work.
[[nodiscard]] Result<void> transfer(const Core& core, CUdeviceptr to, CUdeviceptr from, std::uint64_t size);

/// Thread-safe.
class Memory {
public:
    explicit Memory(Core& core) noexcept : m_core(core), m_shadows(core), m_host_shadows(core) {}
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory(); ///< frees what is left

    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> allocate_host(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_decoy(std::uint64_t size); ///< a shadow that work may touch
    [[nodiscard]] Result<MemoryRef> reserve_host_shadow(std::uint64_t size);
    /// Waits for work that uses the memory (the driver does). Memory of others is left alone, with a warning.
    void release(const MemoryRef& memory) noexcept;

    /// That `size` bytes from `address` exist. `what` begins the message.
    [[nodiscard]] Result<void> check(const char* what, const Address& address, std::uint64_t size, Touch touch) const;
    [[nodiscard]] MemorySpace space_of(const Address& address) const noexcept;
    [[nodiscard]] bool is_managed(const Address& address) const noexcept;
    /// Whether it is in a range of ours, shadows included, or in one that the driver knows.
    [[nodiscard]] bool is_known(std::uint64_t flat) const noexcept;
    /// Shadows are not reported: nothing may read them.
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
    void free(std::uint64_t start, Kind kind) noexcept;
    /// The last of our allocations that starts at or before `flat`, whether it reaches there or not.
    [[nodiscard]] std::optional<Range> ours_before(std::uint64_t flat) const;
    [[nodiscard]] std::optional<Range> ask_driver(std::uint64_t flat) const noexcept;

    Core& m_core;
    Shadows m_shadows;
    HostShadows m_host_shadows;
    mutable std::mutex m_mutex; // guards m_allocations
    std::map<std::uint64_t, Allocation> m_allocations;
};

} // namespace warmgraph::backends::cuda
