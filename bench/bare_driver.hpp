// The CUDA driver as a program without warmgraph calls it: its header's entry points, found at run time, in the thread's
// current context. (cuda_driver.hpp is for programs that are built without that header.)
#pragma once

#include <string>

#include <cuda.h>

namespace warmgraph::bench {

// The names are the header's: its macros choose the version (cuMemAlloc_v2 ...).
#define WARMGRAPH_BARE_CALLS(X)                                                                                        \
    X(cuInit)                                                                                                          \
    X(cuDriverGetVersion)                                                                                              \
    X(cuGetErrorName)                                                                                                  \
    X(cuGetErrorString)                                                                                                \
    X(cuDeviceGetCount)                                                                                                \
    X(cuDeviceGet)                                                                                                     \
    X(cuDeviceGetName)                                                                                                 \
    X(cuDevicePrimaryCtxRetain)                                                                                        \
    X(cuCtxSetCurrent)                                                                                                 \
    X(cuStreamCreate)                                                                                                  \
    X(cuStreamSynchronize)                                                                                             \
    X(cuMemAlloc)                                                                                                      \
    X(cuMemHostAlloc)                                                                                                  \
    X(cuMemsetD8Async)                                                                                                 \
    X(cuMemcpyHtoD)                                                                                                    \
    X(cuMemcpyDtoH)                                                                                                    \
    X(cuModuleLoadData)                                                                                                \
    X(cuModuleGetFunction)                                                                                             \
    X(cuModuleGetGlobal)                                                                                               \
    X(cuFuncSetAttribute)                                                                                              \
    X(cuGraphCreate)                                                                                                   \
    X(cuGraphDestroy)                                                                                                  \
    X(cuGraphAddEmptyNode)                                                                                             \
    X(cuGraphAddKernelNode)                                                                                            \
    X(cuGraphAddMemcpyNode)                                                                                            \
    X(cuGraphAddMemsetNode)                                                                                            \
    X(cuGraphKernelNodeSetAttribute)                                                                                   \
    X(cuGraphKernelNodeGetAttribute)                                                                                   \
    X(cuGraphAddDependencies)                                                                                          \
    X(cuGraphInstantiate)                                                                                              \
    X(cuGraphExecDestroy)                                                                                              \
    X(cuGraphLaunch)

class BareDriver {
public:
    /// Loads $WARMGRAPH_CUDA_DRIVER, else libcuda.so.1, once, and calls cuInit. std::runtime_error where there is none, or no
    /// device.
    [[nodiscard]] static const BareDriver& get();

    /// std::runtime_error with the driver's text where it fails: `call("cuInit", driver.cuInit, 0U)`.
    template <class... Params, class... Args>
    void call(const char* name, CUresult (*function)(Params...), Args... args) const
    {
        const CUresult status = function(args...);
        if (status != CUDA_SUCCESS) [[unlikely]]
            fail(name, status);
    }
    [[noreturn]] void fail(const char* name, CUresult status) const;

    /// "NVIDIA H200, driver interface 13.0"
    [[nodiscard]] std::string describe(int ordinal) const;

    // NOLINTBEGIN(bugprone-macro-parentheses,readability-identifier-naming): the driver's names
#define WARMGRAPH_BARE_MEMBER(name) decltype(&::name) name = nullptr;
    WARMGRAPH_BARE_CALLS(WARMGRAPH_BARE_MEMBER)
#undef WARMGRAPH_BARE_MEMBER
    // NOLINTEND(bugprone-macro-parentheses,readability-identifier-naming)

private:
    BareDriver();
};

/// The primary context of a device, current in this thread for as long as the process lives, and a stream in it.
struct BareContext {
    explicit BareContext(int ordinal);
    const BareDriver& driver;
    CUcontext context = nullptr;
    CUstream stream = nullptr;
};

} // namespace warmgraph::bench
