#pragma once

#include <map>
#include <mutex>
#include <optional>

#include "fake_state.hpp"
#include "warmgraph/backends/address.hpp"
#include "warmgraph/backends/memory_tally.hpp"

namespace warmgraph::backends {

/// Allocations of host memory by base address. Thread-safe.
class FakeMemory {
public:
    explicit FakeMemory(FakeState& state) noexcept : m_state(state) {}

    [[nodiscard]] MemoryTally& tally() noexcept { return m_tally; }
    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size);
    void release(const MemoryRef& memory) noexcept;

    /// Fails when some of the bytes are not allocated. A shadow counts as allocated.
    [[nodiscard]] Result<void> check(const Address& address, std::uint64_t size) const;
    /// `size` bytes of host memory at the address. Fails for a shadow. The span is valid until the memory is released.
    [[nodiscard]] Result<std::span<std::byte>> bytes(const Address& address, std::uint64_t size);
    /// The bytes from the address to the end of its allocation.
    [[nodiscard]] Result<std::span<std::byte>> rest(const Address& address);

private:
    struct Allocation {
        Allocation(FakeState& state, std::uint64_t bytes_in_all) : size(bytes_in_all), count(state.allocations) {}
        std::uint64_t size;
        std::optional<Bytes> bytes; ///< empty for a shadow
        LiveCount count;
    };
    [[nodiscard]] MemoryRef insert(std::uint64_t size, std::optional<Bytes> bytes);
    [[nodiscard]] Result<std::uint64_t> room(const Address& address, std::uint64_t size) const;

    FakeState& m_state;
    mutable std::mutex m_mutex;
    std::map<std::uint64_t, Allocation> m_allocations;
    std::uint64_t m_used = 0;
    MemoryTally m_tally;
};

} // namespace warmgraph::backends
