// Valid addresses and the driver objects behind them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver.hpp"
#include "warmgraph/backends/address.hpp"
#include "warmgraph/backends/memory_tally.hpp"

namespace warmgraph::backends::opencl {

/// Allocations by base. A base is never reused, so addresses of released memory are recognised. A base is so high that
/// no kernel argument looks like one. Thread-safe.
class Memory {
public:
    Memory(cl_context context, std::uint32_t alignment) noexcept : m_context(context), m_alignment(alignment) {}

    [[nodiscard]] MemoryTally& tally() noexcept { return m_tally; }
    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size);
    void release(const MemoryRef& memory) noexcept;

    /// Checks that `size` bytes from `address` exist, shadows included. `what` starts the message.
    [[nodiscard]] Result<void> check(const char* what, const Address& address, std::uint64_t size) const;
    /// Checks that a kernel argument may point there: it is aligned, and at least one byte exists.
    [[nodiscard]] Result<void> check_argument(const Address& address) const;

    /// Returns the allocation's own object, for commands that take offsets; refuses shadows.
    [[nodiscard]] Result<cl_mem> object(const char* what, const Address& address, std::uint64_t size) const;
    /// Returns the object to pass to a kernel: at offset 0 the allocation's own, else a sub-buffer from there to the
    /// end, which is created once and released with the allocation.
    [[nodiscard]] Result<cl_mem> argument(const Address& address);

private:
    struct Allocation {
        std::uint64_t size = 0;
        Buffer object;                         ///< empty: a shadow
        std::map<std::uint64_t, Buffer> parts; ///< sub-buffers by offset
    };
    [[nodiscard]] MemoryRef insert(std::uint64_t size, Buffer object);
    [[nodiscard]] Result<const Allocation*> find(const char* what, const Address& address, std::uint64_t size) const;
    [[nodiscard]] Result<const Allocation*> find_argument(const Address& address) const;

    cl_context m_context;
    std::uint32_t m_alignment;
    MemoryTally m_tally;
    mutable std::mutex m_mutex;
    std::map<std::uint64_t, Allocation> m_allocations;
};

} // namespace warmgraph::backends::opencl
