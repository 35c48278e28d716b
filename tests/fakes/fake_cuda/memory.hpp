// Device memory: host memory in a range of addresses that are never given twice, so that a stale pointer is noticed.
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
    inner, ///< of modules and graphs
    managed,
    registered ///< the process's own
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
    /// 0: out of memory.
    [[nodiscard]] CUdeviceptr allocate(std::size_t size, MemoryKind kind, std::size_t alignment = 512);
    /// Addresses alone, exactly there, as a driver that follows the wish gives them; 0: they are taken.
    [[nodiscard]] CUdeviceptr reserve_at(CUdeviceptr start, std::size_t size);
    /// Memory of the process, from now on known. False where some of it is already.
    bool add_registered(CUdeviceptr start, std::size_t size);
    /// False where no allocation of this kind starts there.
    bool free(CUdeviceptr start, MemoryKind kind);
    /// The live allocation around an address.
    [[nodiscard]] const Allocation* around(CUdeviceptr address) const;
    /// From there to the end of the allocation; empty where there is none.
    [[nodiscard]] std::span<std::byte> rest(CUdeviceptr address) const;
    /// Whether [address, size) may be read and written: inside a live allocation, or memory of the process that this
    /// driver did not allocate.
    [[nodiscard]] bool holds(CUdeviceptr address, std::size_t size) const;
    [[nodiscard]] long count(MemoryKind kind) const { return m_counts[static_cast<std::size_t>(kind)]; }

private:
    [[nodiscard]] bool is_in_range(CUdeviceptr address) const { return address >= m_begin && address < m_end; }
    CUdeviceptr m_begin = 0, m_next = 0, m_end = 0;
    std::size_t m_used = 0; ///< bytes that are not reservations
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
