// cuGetProcAddress, which finds driver functions by name. It returns wrappers: each call is logged, fails if a test
// wants so, and holds the lock.
#include <algorithm>
#include <array>
#include <string_view>

#include "announcements.hpp"
#include "device/driver.hpp" // the functions that the backend uses: if one is missing here, linking fails
#include "driver_state.hpp"
#include "faults.hpp"

namespace fake_cuda {
namespace {

template <std::size_t N>
struct Name {
    char text[N]{};
    consteval Name(const char (&name)[N]) { std::copy_n(name, N, text); } // NOLINT: "cuInit" as an argument
};

constexpr bool releases(std::string_view name)
{
    constexpr std::array k_names{
        "cuMemFree",          "cuMemFreeHost",   "cuMemAddressFree",         "cuMemHostUnregister", "cuMemRelease",
        "cuMemUnmap",         "cuModuleUnload",  "cuStreamDestroy",          "cuEventDestroy",      "cuGraphDestroy",
        "cuGraphExecDestroy", "cuCtxPopCurrent", "cuDevicePrimaryCtxRelease"};
    return std::ranges::find(k_names, name) != k_names.end();
}

/// Does the work that a call still does when a test makes it fail.
void fail_to(CUresult (*)(CUstream, CUgraph*), CUstream stream, CUgraph* graph)
{
    static_cast<void>(cuStreamEndCapture(stream, graph));
    if (*graph != nullptr) static_cast<void>(cuGraphDestroy(*graph));
    *graph = nullptr;
}
template <class... Args>
void fail_to(Args...)
{
}

template <auto Function, Name name>
struct EntryPoint;

template <class... Params, CUresult (*function)(Params...), Name name>
struct EntryPoint<function, name> {
    static CUresult call(Params... params)
    {
        const auto injected = enter(name.text);
        const std::scoped_lock lock(driver_mutex());
        if (!injected) return call_announced<function>(name.text, params...);
        if constexpr (releases(name.text))
            static_cast<void>(function(params...));
        else
            fail_to(function, params...);
        return static_cast<CUresult>(*injected);
    }
};

struct Entry {
    std::string_view name;
    void* address;
};

// Driver functions that the backend does not use. Tests use them to make foreign graphs.
#define FAKE_CUDA_EXTRA(X)                                                                                             \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuCtxSetLimit)                                                                                                   \
    X(cuEventRecordWithFlags)                                                                                          \
    X(cuGraphAddChildGraphNode)                                                                                        \
    X(cuGraphAddMemAllocNode)                                                                                          \
    X(cuGraphAddMemFreeNode)                                                                                           \
    X(cuLaunchKernel)                                                                                                  \
    X(cuMemcpyDtoD)                                                                                                    \
    X(cuMemcpyDtoH)                                                                                                    \
    X(cuMemcpyHtoD)                                                                                                    \
    X(cuMemsetD8)                                                                                                      \
    X(cuLaunchHostFunc)                                                                                                \
    X(cuMemAllocManaged)                                                                                               \
    X(cuMemGetInfo)                                                                                                    \
    X(cuModuleEnumerateFunctions)                                                                                      \
    X(cuModuleGetFunctionCount)                                                                                        \
    X(cuSignalExternalSemaphoresAsync)                                                                                 \
    X(cuStreamBatchMemOp)                                                                                              \
    X(cuStreamQuery)                                                                                                   \
    X(cuStreamWaitValue32)                                                                                             \
    X(cuStreamWaitValue64)                                                                                             \
    X(cuStreamWriteValue32)                                                                                            \
    X(cuStreamWriteValue64)                                                                                            \
    X(cuTexObjectCreate)                                                                                               \
    X(cuTexObjectDestroy)                                                                                              \
    X(cuThreadExchangeStreamCaptureMode)                                                                               \
    X(cuWaitExternalSemaphoresAsync)

const auto& entries()
{
#define FAKE_CUDA_ENTRY(name) Entry{#name, reinterpret_cast<void*>(&EntryPoint<&::name, #name>::call)},
    static const std::array list{WARMGRAPH_CUDA_REQUIRED(FAKE_CUDA_ENTRY) WARMGRAPH_CUDA_OPTIONAL(FAKE_CUDA_ENTRY)
                                     FAKE_CUDA_EXTRA(FAKE_CUDA_ENTRY)};
#undef FAKE_CUDA_ENTRY
    return list;
}

} // namespace
} // namespace fake_cuda

FAKE_CUDA_EXPORT CUresult cuGetProcAddress_v2(const char* symbol, void** address, int, cuuint64_t,
                                              CUdriverProcAddressQueryResult* result)
{
    const auto& list = fake_cuda::entries();
    const auto found = std::ranges::find(list, std::string_view(symbol), &fake_cuda::Entry::name);
    const bool is_known = found != list.end();
    *address = is_known ? found->address : nullptr;
    if (result != nullptr) *result = is_known ? CU_GET_PROC_ADDRESS_SUCCESS : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
    return is_known ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}
