// Keeps account of address reservations and of the memory that is mapped into them. Each address has its own host
// memory. So if a physical chunk is mapped twice, its bytes exist twice, which no test notices.
#include <map>

#include "driver_state.hpp"
#include "memory.hpp"

namespace fake_cuda {
namespace {

constexpr std::size_t k_granularity = 2ULL << 20;

struct Mapping {
    std::size_t size = 0;
    CUmemGenericAllocationHandle physical = 0;
};

std::map<CUmemGenericAllocationHandle, std::size_t> g_physical; ///< sizes of the chunks that are not released yet
std::map<CUdeviceptr, Mapping> g_mappings;
CUmemGenericAllocationHandle g_next = 1;

const Allocation* reservation_around(CUdeviceptr address, std::size_t size)
{
    const Allocation* const found = memory().around(address);
    const bool fits = found != nullptr && found->kind == MemoryKind::reserved &&
                      size <= found->size - (address - found->start) && address % k_granularity == 0 &&
                      size % k_granularity == 0;
    return fits ? found : nullptr;
}

bool is_mapped(CUdeviceptr address, std::size_t size)
{
    for (const CUdeviceptr end = address + size; address < end;) {
        const auto found = g_mappings.find(address);
        if (found == g_mappings.end()) return false;
        address += found->second.size;
    }
    return true;
}

} // namespace

long live_physical_memory() { return static_cast<long>(g_physical.size()); }
long live_mappings() { return static_cast<long>(g_mappings.size()); }

} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuMemGetAllocationGranularity(std::size_t* granularity, const CUmemAllocationProp*,
                                       CUmemAllocationGranularity_flags)
{
    *granularity = k_granularity;
    return CUDA_SUCCESS;
}

CUresult cuMemAddressReserve(CUdeviceptr* address, std::size_t size, std::size_t alignment, CUdeviceptr wish,
                             unsigned long long)
{
    if (size == 0 || size % k_granularity != 0) return CUDA_ERROR_INVALID_VALUE;
    if (wish != 0 && wish % k_granularity == 0) {
        *address = memory().reserve_at(wish, size);
        if (*address != 0) return CUDA_SUCCESS; // the wish is a hint: otherwise any address is given
    }
    *address = memory().allocate(size, MemoryKind::reserved, alignment > k_granularity ? alignment : k_granularity);
    return *address != 0 ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
}

CUresult cuMemAddressFree(CUdeviceptr address, std::size_t size)
{
    const Allocation* const found = reservation_around(address, size);
    if (found == nullptr || found->start != address || found->size != size) return CUDA_ERROR_INVALID_VALUE;
    const auto mapped = g_mappings.lower_bound(address);
    if (mapped != g_mappings.end() && mapped->first < address + size) return CUDA_ERROR_INVALID_VALUE;
    return memory().free(address, MemoryKind::reserved) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, std::size_t size, const CUmemAllocationProp*,
                     unsigned long long)
{
    FAKE_CUDA_CHECK(require_context());
    if (size == 0 || size % k_granularity != 0) return CUDA_ERROR_INVALID_VALUE;
    *handle = g_next++;
    g_physical.emplace(*handle, size);
    return CUDA_SUCCESS;
}

// As in the driver, the memory stays alive while it is mapped.
CUresult cuMemRelease(CUmemGenericAllocationHandle handle)
{
    return g_physical.erase(handle) != 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuMemMap(CUdeviceptr address, std::size_t size, std::size_t offset, CUmemGenericAllocationHandle handle,
                  unsigned long long)
{
    const auto physical = g_physical.find(handle);
    if (physical == g_physical.end() || offset != 0) return CUDA_ERROR_INVALID_VALUE;
    if (size != physical->second) return CUDA_ERROR_NOT_SUPPORTED; // as driver 580
    if (reservation_around(address, size) == nullptr || g_mappings.contains(address)) return CUDA_ERROR_INVALID_VALUE;
    g_mappings.emplace(address, Mapping{size, handle});
    return CUDA_SUCCESS;
}

CUresult cuMemUnmap(CUdeviceptr address, std::size_t size)
{
    if (reservation_around(address, size) == nullptr || !is_mapped(address, size)) return CUDA_ERROR_INVALID_VALUE;
    g_mappings.erase(g_mappings.lower_bound(address), g_mappings.lower_bound(address + size));
    return CUDA_SUCCESS;
}

CUresult cuMemSetAccess(CUdeviceptr address, std::size_t size, const CUmemAccessDesc*, std::size_t count)
{
    return count == 1 && is_mapped(address, size) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
