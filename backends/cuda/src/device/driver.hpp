// The CUDA driver, found at run time, and the only way to call it. Errors contain the name of the failed call.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include <cuda.h>

#include "warmgraph/base/error.hpp"

namespace warmgraph::backends::cuda {

// The required functions. The header's macros choose their versions (cuMemAlloc_v2 ...), as cuGetProcAddress does for
// the header's CUDA_VERSION.
#define WARMGRAPH_CUDA_REQUIRED(X)                                                                                     \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDeviceGetUuid)                                                                                                 \
    X(cuDeviceGetAttribute)                                                                                            \
    X(cuDeviceTotalMem)                                                                                                \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuDevicePrimaryCtxRelease)                                                                                       \
    X(cuCtxPushCurrent)                                                                                                \
    X(cuCtxPopCurrent)                                                                                                 \
    X(cuCtxGetCurrent)                                                                                                 \
    X(cuCtxGetLimit)                                                                                                   \
    X(cuCtxSynchronize)                                                                                                \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemFree)                                                                                                       \
    X(cuMemHostAlloc)                                                                                                  \
    X(cuMemFreeHost)                                                                                                   \
    X(cuMemHostRegister)                                                                                               \
    X(cuMemHostUnregister)                                                                                             \
    X(cuMemcpy)                                                                                                        \
    X(cuMemcpyAsync)                                                                                                   \
    X(cuMemGetAddressRange)                                                                                            \
    X(cuMemGetInfo)                                                                                                    \
    X(cuMemAddressReserve)                                                                                             \
    X(cuMemAddressFree)                                                                                                \
    X(cuMemCreate)                                                                                                     \
    X(cuMemRelease)                                                                                                    \
    X(cuMemMap)                                                                                                        \
    X(cuMemUnmap)                                                                                                      \
    X(cuMemSetAccess)                                                                                                  \
    X(cuMemGetAllocationGranularity)                                                                                   \
    X(cuPointerGetAttribute)                                                                                           \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuMemsetD16Async)                                                                                                \
    X(cuMemsetD32Async)                                                                                                \
    X(cuMemsetD2D8Async)                                                                                               \
    X(cuMemsetD2D16Async)                                                                                              \
    X(cuMemsetD2D32Async)                                                                                              \
    X(cuMemcpy3DAsync)                                                                                                 \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamDestroy)                                                                                                 \
    X(cuStreamSynchronize)                                                                                             \
    X(cuStreamWaitEvent)                                                                                               \
    X(cuStreamBeginCapture)                                                                                            \
    X(cuStreamEndCapture)                                                                                              \
    X(cuStreamIsCapturing)                                                                                             \
    X(cuThreadExchangeStreamCaptureMode)                                                                               \
    X(cuEventCreate)                                                                                                   \
    X(cuEventRecord)                                                                                                   \
    X(cuEventDestroy)                                                                                                  \
    X(cuEventQuery)                                                                                                    \
    X(cuEventSynchronize)                                                                                              \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleUnload)                                                                                                  \
    X(cuModuleGetFunction)                                                                                             \
    X(cuModuleGetGlobal)                                                                                               \
    X(cuModuleGetFunctionCount)                                                                                        \
    X(cuModuleEnumerateFunctions)                                                                                      \
    X(cuFuncGetAttribute)                                                                                              \
    X(cuFuncSetAttribute)                                                                                              \
    X(cuFuncGetModule)                                                                                                 \
    X(cuFuncGetName)                                                                                                   \
    X(cuFuncGetParamInfo)                                                                                              \
    X(cuKernelGetFunction)                                                                                             \
    X(cuLaunchKernel)                                                                                                  \
    X(cuLaunchKernelEx)                                                                                                \
    X(cuTexObjectGetResourceDesc)                                                                                      \
    X(cuSurfObjectGetResourceDesc)                                                                                     \
    X(cuGraphCreate)                                                                                                   \
    X(cuGraphDestroy)                                                                                                  \
    X(cuGraphGetNodes)                                                                                                 \
    X(cuGraphGetEdges)                                                                                                 \
    X(cuGraphNodeGetType)                                                                                              \
    X(cuGraphAddDependencies)                                                                                          \
    X(cuGraphAddEmptyNode)                                                                                             \
    X(cuGraphAddKernelNode)                                                                                            \
    X(cuGraphKernelNodeGetParams)                                                                                      \
    X(cuGraphKernelNodeGetAttribute)                                                                                   \
    X(cuGraphKernelNodeSetAttribute)                                                                                   \
    X(cuGraphAddMemcpyNode)                                                                                            \
    X(cuGraphMemcpyNodeGetParams)                                                                                      \
    X(cuGraphAddMemsetNode)                                                                                            \
    X(cuGraphMemsetNodeGetParams)                                                                                      \
    X(cuGraphAddEventRecordNode)                                                                                       \
    X(cuGraphEventRecordNodeGetEvent)                                                                                  \
    X(cuGraphAddEventWaitNode)                                                                                         \
    X(cuGraphEventWaitNodeGetEvent)                                                                                    \
    X(cuGraphAddHostNode)                                                                                              \
    X(cuGraphHostNodeGetParams)                                                                                        \
    X(cuGraphChildGraphNodeGetGraph)                                                                                   \
    X(cuGraphMemAllocNodeGetParams)                                                                                    \
    X(cuGraphMemFreeNodeGetParams)                                                                                     \
    X(cuGraphInstantiate)                                                                                              \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphUpload)                                                                                                   \
    X(cuGraphLaunch)                                                                                                   \
    X(cuGraphExecKernelNodeSetParams)                                                                                  \
    X(cuGraphExecMemcpyNodeSetParams)                                                                                  \
    X(cuGraphExecMemsetNodeSetParams)                                                                                  \
    X(cuGraphExecEventRecordNodeSetEvent)                                                                              \
    X(cuGraphExecEventWaitNodeSetEvent)                                                                                \
    X(cuGraphExecHostNodeSetParams)

// Optional functions, null if the driver lacks them. The code that calls them also works without them.
#define WARMGRAPH_CUDA_OPTIONAL(X)                                                                                     \
    X(cuGraphInstantiateWithParams)                                                                                    \
    X(cuLibraryGetModule)                                                                                              \
    X(cuKernelGetLibrary)                                                                                              \
    X(cuGraphAddBatchMemOpNode)                                                                                        \
    X(cuGraphBatchMemOpNodeGetParams)                                                                                  \
    X(cuGraphExecBatchMemOpNodeSetParams)                                                                              \
    X(cuGraphAddExternalSemaphoresSignalNode)                                                                          \
    X(cuGraphAddExternalSemaphoresWaitNode)                                                                            \
    X(cuGraphExternalSemaphoresSignalNodeGetParams)                                                                    \
    X(cuGraphExternalSemaphoresWaitNodeGetParams)                                                                      \
    X(cuGraphExecExternalSemaphoresSignalNodeSetParams)                                                                \
    X(cuGraphExecExternalSemaphoresWaitNodeSetParams)

/// The driver's functions. Immutable after load; all objects of the backend share it.
class Driver {
public:
    /// not_found: the library is missing. unsupported: the library is too old (with the versions). Both messages have
    /// the cure.
    [[nodiscard]] static Result<std::shared_ptr<const Driver>> load(const std::string& library);
    Driver() = default;
    Driver(const Driver&) = delete;
    Driver& operator=(const Driver&) = delete;
    ~Driver();

    /// Makes an error like "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (out of memory)". Its code is out_of_memory or
    /// driver_failed.
    [[nodiscard]] Error error(const char* function, CUresult status) const;

    template <class... Params, class... Args>
    [[nodiscard]] Result<void> call(const char* name, CUresult (*function)(Params...), Args... args) const
    {
        const CUresult status = function(args...);
        if (status == CUDA_SUCCESS) [[likely]]
            return {};
        return std::unexpected(error(name, status));
    }

    /// Returns the plain status, for calls whose failure is an answer: `status("cuInit", driver.cuInit, 0U)`. The name
    /// is unused here, but a test that searches the source for raw calls needs it.
    template <class... Params, class... Args>
    [[nodiscard]] CUresult status(const char*, CUresult (*function)(Params...), Args... args) const noexcept
    {
        return function(args...);
    }

    int version = 0;    ///< the driver's version, e.g. 13000
    std::string path{}; ///< path of the loaded library; empty if unknown
    // NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming): the driver's names
#define WARMGRAPH_CUDA_MEMBER(name) decltype(&::name) name = nullptr;
    WARMGRAPH_CUDA_REQUIRED(WARMGRAPH_CUDA_MEMBER)
    WARMGRAPH_CUDA_OPTIONAL(WARMGRAPH_CUDA_MEMBER)
#undef WARMGRAPH_CUDA_MEMBER
    // NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)

private:
    void* m_library = nullptr;
};

} // namespace warmgraph::backends::cuda
