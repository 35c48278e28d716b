// The driver functions that the fake CUPTI reports, with CUPTI's numbers and parameter structures for them.
#pragma once

#include <cuda.h>
#include <cupti.h>

#include "cupti.hpp"

namespace fake_cuda {

/// A driver function for which CUPTI has no callbacks.
template <auto function>
struct Announcement {
    static constexpr bool exists = false;
};

struct NoParams {};

#define FAKE_CUDA_ANNOUNCED_AS(function, name, type)                                                                   \
    template <>                                                                                                        \
    struct Announcement<&::function> {                                                                                 \
        static constexpr bool exists = true;                                                                           \
        static constexpr auto id = CUPTI_DRIVER_TRACE_CBID_##name;                                                     \
        using Params = type;                                                                                           \
    };
// There are two macros so that the macros of the header choose the version: cuMemcpyHtoD becomes cuMemcpyHtoD_v2.
#define FAKE_CUDA_ANNOUNCED_VERSION(name) FAKE_CUDA_ANNOUNCED_AS(name, name, name##_params)
#define FAKE_CUDA_ANNOUNCED(name) FAKE_CUDA_ANNOUNCED_VERSION(name)

FAKE_CUDA_ANNOUNCED(cuDriverGetVersion)
FAKE_CUDA_ANNOUNCED(cuLaunchKernel)
FAKE_CUDA_ANNOUNCED(cuLaunchKernelEx)
FAKE_CUDA_ANNOUNCED(cuLaunchHostFunc)
FAKE_CUDA_ANNOUNCED(cuGraphLaunch)
FAKE_CUDA_ANNOUNCED(cuModuleGetGlobal)
FAKE_CUDA_ANNOUNCED(cuModuleUnload)
FAKE_CUDA_ANNOUNCED(cuMemcpy)
FAKE_CUDA_ANNOUNCED(cuMemcpyHtoD)
FAKE_CUDA_ANNOUNCED(cuMemcpyDtoH)
FAKE_CUDA_ANNOUNCED(cuMemcpyDtoD)
FAKE_CUDA_ANNOUNCED(cuMemsetD8)
FAKE_CUDA_ANNOUNCED(cuMemcpyAsync)
FAKE_CUDA_ANNOUNCED(cuMemcpy3DAsync)
FAKE_CUDA_ANNOUNCED(cuMemsetD8Async)
FAKE_CUDA_ANNOUNCED(cuMemsetD16Async)
FAKE_CUDA_ANNOUNCED(cuMemsetD32Async)
FAKE_CUDA_ANNOUNCED(cuMemsetD2D8Async)
FAKE_CUDA_ANNOUNCED(cuMemsetD2D16Async)
FAKE_CUDA_ANNOUNCED(cuMemsetD2D32Async)
FAKE_CUDA_ANNOUNCED(cuStreamBatchMemOp)
FAKE_CUDA_ANNOUNCED(cuStreamWaitValue32)
FAKE_CUDA_ANNOUNCED(cuStreamWaitValue64)
FAKE_CUDA_ANNOUNCED(cuStreamWriteValue32)
FAKE_CUDA_ANNOUNCED(cuStreamWriteValue64)
FAKE_CUDA_ANNOUNCED(cuSignalExternalSemaphoresAsync)
FAKE_CUDA_ANNOUNCED(cuWaitExternalSemaphoresAsync)
FAKE_CUDA_ANNOUNCED(cuEventRecord)
FAKE_CUDA_ANNOUNCED(cuEventRecordWithFlags)
FAKE_CUDA_ANNOUNCED(cuEventSynchronize)
FAKE_CUDA_ANNOUNCED(cuStreamWaitEvent)
FAKE_CUDA_ANNOUNCED(cuStreamSynchronize)
FAKE_CUDA_ANNOUNCED_AS(cuCtxSynchronize, cuCtxSynchronize, NoParams)

/// Calls `function`. If CUPTI has callbacks for it, they are called before and after it.
template <auto function, class... Arguments>
CUresult call_announced(const char* name, Arguments... arguments)
{
    using About = Announcement<function>;
    if constexpr (!About::exists) {
        return function(arguments...);
    } else {
        const typename About::Params structure{arguments...};
        AnnouncedCall call(static_cast<std::uint32_t>(About::id), name, &structure);
        call.begin();
        const CUresult status = function(arguments...);
        call.end(status);
        return status;
    }
}

} // namespace fake_cuda
