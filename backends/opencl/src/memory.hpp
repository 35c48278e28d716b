// Which addresses there are, and the driver objects behind them.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>

#include "driver.hpp"
#include "warmgraph/backends/address.hpp"

namespace warmgraph::backends::opencl {

/// Allocations by base. A base is an id that is never given twice, so an address of released memory is recognised,
/// and so high that no kernel argument is mistaken for one. Thread-safe.
class Memory {
public:
    Memory(cl_context context, std::uint32_t alignment) noexcept : m_context(context), m_alignment(alignment) {}

    [[nodiscard]] Result<MemoryRef> allocate(std::uint64_t size);
    [[nodiscard]] Result<MemoryRef> reserve_shadow(std::uint64_t size);
    void release(const MemoryRef& memory) noexcept;

    /// That `size` bytes from `address` exist, shadows included. `what` begins the message.
    [[nodiscard]] Result<void> check(const char* what, const Address& address, std::uint64_t size) const;
    /// The same, that an argument may point there: aligned, and at least one byte.
    [[nodiscard]] Result<void> check_argument(const Address& address) const;

    /// The allocation's own object, for commands that take offsets; a shadow is refused.
    [[nodiscard]] Result<cl_mem> object(const char* what, const Address& address, std::uint64_t size) const;
    /// The object to pass to a kernel: the allocation's own at offset 0, else a sub-buffer from there to its end, made
    /// once and released with it.
    [[nodiscard]] Result<cl_mem> argument(const Address& address);

private:
    struct Allocation {
        std::uint64_t size = 0;
        Buffer object;                         ///< empty: a shadow
        std::map<std::uint64_t, Buffer> parts; ///< by offset
    };
    [[nodiscard]] MemoryRef insert(std::uint64_t size, Buffer object);
    [[nodiscard]] Result<const Allocation*> find(const char* what, const Address& address, std::uint64_t size) const;
    [[nodiscard]] Result<const Allocation*> find_argument(const Address& address) const;

    cl_context m_context;
    std::uint32_t m_alignment;
    mutable std::mutex m_mutex;
    std::map<std::uint64_t, Allocation> m_allocations;
};

} // namespace warmgraph::backends::opencl
