#include "memory.hpp"

#include <cstring>

#include <sys/mman.h>

#include "driver_state.hpp"

namespace fake_cuda {
namespace {

constexpr std::size_t k_range = 16ULL << 40; // bytes of addresses without memory; enough for a shadow of one tebibyte
constexpr std::size_t k_least_range = 64ULL << 30;
constexpr std::size_t k_page = 4096;

/// Reserves a smaller range when the system has no room for it: ThreadSanitizer leaves a program only some hundreds of
/// gigabytes.
std::span<std::byte> reserve_range()
{
    for (std::size_t size = k_range; size >= k_least_range; size /= 2) {
        void* const range =
            ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (range != MAP_FAILED) return {static_cast<std::byte*>(range), size};
    }
    return {};
}

constexpr std::size_t round_up(std::size_t value, std::size_t multiple)
{
    return (value + multiple - 1) / multiple * multiple;
}

} // namespace

CUdeviceptr Memory::allocate(std::size_t size, MemoryKind kind, std::size_t alignment)
{
    if (m_begin == 0) {
        const auto range = reserve_range();
        if (range.empty()) return 0;
        m_begin = m_next = address_of(range.data());
        m_end = m_begin + range.size();
    }
    const bool is_backed = kind != MemoryKind::reserved;
    if (is_backed && size > k_total_memory - m_used) return 0;
    const CUdeviceptr start = round_up(m_next, alignment);
    if (start > m_end || size > m_end - start) return 0;
    m_next = start + round_up(size, 512);
    if (is_backed) m_used += size;
    m_allocations.emplace(start, Allocation{start, size, kind});
    ++m_counts[static_cast<std::size_t>(kind)];
    return start;
}

CUdeviceptr Memory::reserve_at(CUdeviceptr start, std::size_t size)
{
    // The address is only a hint: if a fixed address was outside the range of the program, ThreadSanitizer would end
    // it.
    constexpr int k_flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
    void* const range = ::mmap(pointer_to<void>(start), size, PROT_READ | PROT_WRITE, k_flags, -1, 0);
    if (range == MAP_FAILED) return 0;
    if (address_of(range) != start) {
        ::munmap(range, size);
        return 0;
    }
    m_allocations.emplace(start, Allocation{start, size, MemoryKind::reserved});
    ++m_counts[static_cast<std::size_t>(MemoryKind::reserved)];
    return start;
}

bool Memory::add_registered(CUdeviceptr start, std::size_t size)
{
    if (start == 0 || size == 0 || is_in_range(start) || around(start) != nullptr) return false;
    m_allocations.emplace(start, Allocation{start, size, MemoryKind::registered});
    ++m_counts[static_cast<std::size_t>(MemoryKind::registered)];
    return true;
}

bool Memory::free(CUdeviceptr start, MemoryKind kind)
{
    const auto found = m_allocations.find(start);
    if (found == m_allocations.end() || found->second.kind != kind) return false;
    // Returns whole pages to the system.
    const CUdeviceptr first = round_up(start, k_page), end = (start + found->second.size) / k_page * k_page;
    if (kind == MemoryKind::reserved && !is_in_range(start))
        ::munmap(pointer_to<void>(start), found->second.size);
    else if (end > first && kind != MemoryKind::registered)
        ::madvise(pointer_to<void>(first), end - first, MADV_DONTNEED);
    if (kind != MemoryKind::reserved && kind != MemoryKind::registered) m_used -= found->second.size;
    --m_counts[static_cast<std::size_t>(kind)];
    m_allocations.erase(found);
    return true;
}

const Allocation* Memory::around(CUdeviceptr address) const
{
    auto found = m_allocations.upper_bound(address);
    if (found == m_allocations.begin()) return nullptr;
    --found;
    return address - found->second.start < found->second.size ? &found->second : nullptr;
}

std::span<std::byte> Memory::rest(CUdeviceptr address) const
{
    const Allocation* const found = around(address);
    if (found == nullptr) return {};
    return {pointer_to<std::byte>(address), found->start + found->size - address};
}

bool Memory::holds(CUdeviceptr address, std::size_t size) const
{
    // Only shadows get addresses in this range (far_addresses.hpp), so such an address without an allocation is stale.
    const bool is_far = address >= 1ULL << 44 && address < 1ULL << 46;
    if (is_in_range(address) || is_far || around(address) != nullptr) return rest(address).size() >= size;
    return address != 0;
}

Memory& memory()
{
    static Memory all;
    return all;
}

} // namespace fake_cuda

using namespace fake_cuda;

static CUresult allocate(CUdeviceptr* address, std::size_t size, MemoryKind kind)
{
    FAKE_CUDA_CHECK(require_context());
    if (size == 0) return CUDA_ERROR_INVALID_VALUE;
    *address = memory().allocate(size, kind);
    return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAlloc(CUdeviceptr* address, std::size_t size) { return allocate(address, size, MemoryKind::device); }

CUresult cuMemFree(CUdeviceptr address)
{
    FAKE_CUDA_CHECK(require_context());
    const bool is_freed = memory().free(address, MemoryKind::device) || memory().free(address, MemoryKind::managed);
    return is_freed ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemAllocManaged(CUdeviceptr* address, std::size_t size, unsigned int)
{
    return allocate(address, size, MemoryKind::managed);
}

CUresult cuMemHostAlloc(void** pointer, std::size_t size, unsigned int)
{
    CUdeviceptr address = 0;
    const CUresult status = allocate(&address, size, MemoryKind::host);
    *pointer = pointer_to<void>(address);
    return status;
}

CUresult cuMemFreeHost(void* pointer)
{
    FAKE_CUDA_CHECK(require_context());
    return memory().free(address_of(pointer), MemoryKind::host) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemHostRegister(void* pointer, std::size_t size, unsigned int)
{
    FAKE_CUDA_CHECK(require_context());
    if (address_of(pointer) == 0 || size == 0) return CUDA_ERROR_INVALID_VALUE;
    return memory().add_registered(address_of(pointer), size) ? CUDA_SUCCESS
                                                              : CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
}

CUresult cuMemHostUnregister(void* pointer)
{
    FAKE_CUDA_CHECK(require_context());
    return memory().free(address_of(pointer), MemoryKind::registered) ? CUDA_SUCCESS
                                                                      : CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
}

CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t size)
{
    FAKE_CUDA_CHECK(require_context());
    if (!memory().holds(to, size) || !memory().holds(from, size)) return CUDA_ERROR_INVALID_VALUE;
    std::memmove(pointer_to<void>(to), pointer_to<void>(from), size);
    return sticky_error();
}

CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t size)
{
    return cuMemcpy(to, address_of(from), size);
}

CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t size) { return cuMemcpy(address_of(to), from, size); }

CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t size) { return cuMemcpy(to, from, size); }

CUresult cuMemsetD8(CUdeviceptr start, unsigned char value, std::size_t count)
{
    FAKE_CUDA_CHECK(require_context());
    if (memory().rest(start).size() < count) return CUDA_ERROR_INVALID_VALUE;
    std::memset(pointer_to<void>(start), value, count);
    return sticky_error();
}

CUresult cuMemGetAddressRange(CUdeviceptr* start, std::size_t* size, CUdeviceptr address)
{
    FAKE_CUDA_CHECK(require_context());
    const Allocation* const found = memory().around(address);
    if (found == nullptr) return CUDA_ERROR_NOT_FOUND;
    if (start != nullptr) *start = found->start;
    if (size != nullptr) *size = found->size;
    return CUDA_SUCCESS;
}

CUresult cuMemGetInfo(std::size_t* available, std::size_t* total)
{
    FAKE_CUDA_CHECK(require_context());
    *available = *total = k_total_memory;
    return CUDA_SUCCESS;
}

CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute, CUdeviceptr address)
{
    FAKE_CUDA_CHECK(require_context());
    const Allocation* const found = memory().around(address);
    if (found == nullptr) return CUDA_ERROR_INVALID_VALUE;
    const auto put = [data](auto value) { std::memcpy(data, &value, sizeof value); };
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        put(static_cast<unsigned>(is_host(*found) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE));
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER: put(address); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_IS_MANAGED: put(found->kind == MemoryKind::managed ? 1U : 0U); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: put(0); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR: put(found->start); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: put(found->size); return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MAPPED: put(1U); return CUDA_SUCCESS;
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}
