// The fake driver's initialisation, its only device, and the device's primary context.
#include <algorithm>
#include <cstring>
#include <map>
#include <string_view>

#include "driver_state.hpp"
#include "fake_cuda.h"
#include "faults.hpp"
#include "graphs.hpp"
#include "memory.hpp"
#include "modules.hpp"
#include "streams.hpp"

struct CUctx_st {
    long retained = 0;
    CUresult sticky = CUDA_SUCCESS;
};

namespace fake_cuda {
namespace {

bool g_is_initialised = false;
std::map<CUdevice_attribute, int> g_attributes; // the attributes that a test has set
int g_driver_version = CUDA_VERSION;
std::size_t g_malloc_heap = 8U << 20U; // as large as the real driver's default

CUctx_st& primary()
{
    static CUctx_st context;
    return context;
}

std::vector<CUcontext>& current_contexts()
{
    static thread_local std::vector<CUcontext> stack;
    return stack;
}

CUresult check_device(CUdevice device)
{
    if (!g_is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
    return device == 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_DEVICE;
}

} // namespace

std::recursive_mutex& driver_mutex()
{
    static std::recursive_mutex mutex;
    return mutex;
}

void set_sticky_error(CUresult status) { primary().sticky = status; }
CUresult sticky_error() { return primary().sticky; }

int device_architecture()
{
    const auto chosen = [](CUdevice_attribute attribute, int usual) {
        const auto found = g_attributes.find(attribute);
        return found != g_attributes.end() ? found->second : usual;
    };
    return 10 * chosen(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, k_architecture / 10) +
           chosen(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, k_architecture % 10);
}

void forget_state()
{
    const std::scoped_lock lock(driver_mutex());
    primary().sticky = CUDA_SUCCESS;
    g_attributes.clear();
    g_driver_version = CUDA_VERSION;
}

CUresult require_context()
{
    if (!g_is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
    const auto& stack = current_contexts();
    return !stack.empty() && stack.back() != nullptr && primary().retained > 0 ? CUDA_SUCCESS
                                                                               : CUDA_ERROR_INVALID_CONTEXT;
}

long retained_contexts() { return primary().retained; }
long contexts_of_this_thread() { return static_cast<long>(current_contexts().size()); }

std::vector<std::pair<const char*, long>> live_objects()
{
    const std::scoped_lock lock(driver_mutex());
    return {{"allocations", memory().count(MemoryKind::device)},
            {"managed allocations", memory().count(MemoryKind::managed)},
            {"registered host memory", memory().count(MemoryKind::registered)},
            {"host allocations", memory().count(MemoryKind::host)},
            {"reservations", memory().count(MemoryKind::reserved)},
            {"memory of modules and graphs", memory().count(MemoryKind::inner)},
            {"physical memory", live_physical_memory()},
            {"mappings", live_mappings()},
            {"modules", live_modules()},
            {"streams", live_streams()},
            {"events", live_events()},
            {"graphs", live_graphs()},
            {"execs", live_execs()},
            {"retained contexts", retained_contexts()},
            {"contexts current here", contexts_of_this_thread()}};
}

} // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA_EXPORT void fake_cuda_set_attribute(int attribute, int value)
{
    const std::scoped_lock lock(driver_mutex());
    g_attributes[static_cast<CUdevice_attribute>(attribute)] = value;
}

FAKE_CUDA_EXPORT void fake_cuda_set_driver_version(int version)
{
    const std::scoped_lock lock(driver_mutex());
    g_driver_version = version;
}

CUresult cuInit(unsigned int flags)
{
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    g_is_initialised = true;
    return CUDA_SUCCESS;
}

CUresult cuDriverGetVersion(int* version)
{
    *version = g_driver_version;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count)
{
    if (!g_is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
    *count = 1;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGet(CUdevice* device, int ordinal)
{
    FAKE_CUDA_CHECK(check_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetName(char* name, int length, CUdevice device)
{
    FAKE_CUDA_CHECK(check_device(device));
    constexpr std::string_view k_name = "fake CUDA device";
    const std::size_t used = std::min<std::size_t>(k_name.size(), static_cast<std::size_t>(std::max(length, 1)) - 1);
    std::memcpy(name, k_name.data(), used);
    name[used] = '\0';
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device)
{
    FAKE_CUDA_CHECK(check_device(device));
    for (std::size_t i = 0; i < sizeof uuid->bytes; ++i) uuid->bytes[i] = static_cast<char>(i);
    return CUDA_SUCCESS;
}

CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device)
{
    FAKE_CUDA_CHECK(check_device(device));
    if (const auto chosen = g_attributes.find(attribute); chosen != g_attributes.end()) {
        *value = chosen->second;
        return CUDA_SUCCESS;
    }
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = k_architecture / 10; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = k_architecture % 10; break;
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: *value = 32; break;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: *value = static_cast<int>(k_max_block); break;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: *value = 64; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: *value = 0x7fffffff; break;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: *value = 65535; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: *value = k_default_shared; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN:
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = k_largest_shared; break;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: *value = 1'980'000; break;
    default: *value = 1; break;
    }
    return CUDA_SUCCESS;
}

CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device)
{
    FAKE_CUDA_CHECK(check_device(device));
    *bytes = k_total_memory;
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device)
{
    FAKE_CUDA_CHECK(check_device(device));
    ++primary().retained;
    *context = &primary();
    return CUDA_SUCCESS;
}

CUresult cuDevicePrimaryCtxRelease(CUdevice device)
{
    FAKE_CUDA_CHECK(check_device(device));
    if (primary().retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    --primary().retained;
    return CUDA_SUCCESS;
}

CUresult cuCtxPushCurrent(CUcontext context)
{
    if (context != &primary() || primary().retained == 0) return CUDA_ERROR_INVALID_CONTEXT;
    current_contexts().push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxPopCurrent(CUcontext* context)
{
    auto& stack = current_contexts();
    if (stack.empty()) return CUDA_ERROR_INVALID_CONTEXT;
    if (context != nullptr) *context = stack.back();
    stack.pop_back();
    return CUDA_SUCCESS;
}

CUresult cuCtxSetCurrent(CUcontext context)
{
    auto& stack = current_contexts();
    if (!stack.empty()) stack.pop_back();
    if (context != nullptr) stack.push_back(context);
    return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context)
{
    const auto& stack = current_contexts();
    *context = stack.empty() ? nullptr : stack.back();
    return CUDA_SUCCESS;
}

CUresult cuCtxGetLimit(std::size_t* value, CUlimit limit)
{
    FAKE_CUDA_CHECK(require_context());
    if (limit != CU_LIMIT_MALLOC_HEAP_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    *value = g_malloc_heap;
    return CUDA_SUCCESS;
}

CUresult cuCtxSetLimit(CUlimit limit, std::size_t value)
{
    FAKE_CUDA_CHECK(require_context());
    if (limit != CU_LIMIT_MALLOC_HEAP_SIZE) return CUDA_ERROR_UNSUPPORTED_LIMIT;
    g_malloc_heap = value;
    return CUDA_SUCCESS;
}

CUresult cuCtxSynchronize()
{
    FAKE_CUDA_CHECK(require_context());
    return sticky_error();
}

CUresult cuGetErrorName(CUresult status, const char** name)
{
    switch (status) {
    case CUDA_SUCCESS: *name = "CUDA_SUCCESS"; break;
    case CUDA_ERROR_INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; break;
    case CUDA_ERROR_OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; break;
    case CUDA_ERROR_NOT_INITIALIZED: *name = "CUDA_ERROR_NOT_INITIALIZED"; break;
    case CUDA_ERROR_INVALID_CONTEXT: *name = "CUDA_ERROR_INVALID_CONTEXT"; break;
    case CUDA_ERROR_INVALID_IMAGE: *name = "CUDA_ERROR_INVALID_IMAGE"; break;
    case CUDA_ERROR_NO_BINARY_FOR_GPU: *name = "CUDA_ERROR_NO_BINARY_FOR_GPU"; break;
    case CUDA_ERROR_INVALID_HANDLE: *name = "CUDA_ERROR_INVALID_HANDLE"; break;
    case CUDA_ERROR_NOT_FOUND: *name = "CUDA_ERROR_NOT_FOUND"; break;
    case CUDA_ERROR_ILLEGAL_ADDRESS: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; break;
    case CUDA_ERROR_UNKNOWN: *name = "CUDA_ERROR_UNKNOWN"; break;
    default: *name = "CUDA_ERROR_OF_THE_FAKE"; break;
    }
    return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult status, const char** text)
{
    *text = status == CUDA_ERROR_OUT_OF_MEMORY ? "out of memory" : "text of the fake driver";
    return CUDA_SUCCESS;
}
