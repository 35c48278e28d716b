// The fake's device memory. It is host memory in a range of addresses that are never used again, so that a stale
// pointer is noticed.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <span>

#include <cuda.h>

namespace fake_cuda {

enum class MemoryKind : unsigned char {
    device,
    host,
    reserved,
    inner, ///< memory that belongs to a module or a graph
    managed,
    registered ///< host memory that the process has registered
};

struct Allocation {
    CUdeviceptr start = 0;
    std::size_t size = 0;
    MemoryKind kind = MemoryKind::device;
};

[[nodiscard]] constexpr bool is_host(const Allocation& allocation)
{
    return allocation.kind == MemoryKind::host || allocation.kind == MemoryKind::registered;
}

class Memory {
public:
    /// Allocates memory. Returns 0 when there is no memory left.
    [[nodiscard]] CUdeviceptr allocate(std::size_t size, MemoryKind kind, std::size_t alignment = 512);
    /// Reserves addresses exactly at `start`, as a driver does that follows the hint. Returns 0 when these addresses
    /// are in use.
    [[nodiscard]] CUdeviceptr reserve_at(CUdeviceptr start, std::size_t size);
    /// Registers memory of the process. Returns false when some of it is registered already.
    bool add_registered(CUdeviceptr start, std::size_t size);
    /// Frees an allocation. Returns false when no allocation of this kind starts at `start`.
    bool free(CUdeviceptr start, MemoryKind kind);
    /// The live allocation that contains the address.
    [[nodiscard]] const Allocation* around(CUdeviceptr address) const;
    /// The bytes from the address to the end of its allocation; empty when there is no allocation.
    [[nodiscard]] std::span<std::byte> rest(CUdeviceptr address) const;
    /// Whether `size` bytes at the address may be read and written: in a live allocation, or in memory of the process
    /// that this driver did not allocate.
    [[nodiscard]] bool holds(CUdeviceptr address, std::size_t size) const;
    [[nodiscard]] long count(MemoryKind kind) const { return m_counts[static_cast<std::size_t>(kind)]; }

private:
    [[nodiscard]] bool is_in_range(CUdeviceptr address) const { return address >= m_begin && address < m_end; }
    CUdeviceptr m_begin = 0, m_next = 0, m_end = 0;
    std::size_t m_used = 0; ///< bytes of all allocations, without reservations
    std::map<CUdeviceptr, Allocation> m_allocations;
    std::array<long, 6> m_counts{};
};

[[nodiscard]] Memory& memory();
[[nodiscard]] long live_physical_memory();
[[nodiscard]] long live_mappings();

template <class T>
[[nodiscard]] T* pointer_to(CUdeviceptr address)
{
    return reinterpret_cast<T*>(address); // NOLINT: device memory is host memory here
}
[[nodiscard]] inline CUdeviceptr address_of(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

} // namespace fake_cuda
