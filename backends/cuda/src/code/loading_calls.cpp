#include "code/loading_calls.hpp"

#include <array>

namespace warmgraph::backends::cuda {

namespace {

CallSubject made(CUmodule module) noexcept { return {.made = module}; }
CallSubject about(CUmodule module) noexcept { return {.module = module}; }
CallSubject about(CUlibrary library) noexcept { return {.library = library}; }
CallSubject about(CUkernel kernel) noexcept { return {.kernel = kernel}; }
CallSubject about(CUfunction function) noexcept { return {.function = function}; }

CallSubject about(const CUDA_KERNEL_NODE_PARAMS* node) noexcept
{
    return node->func != nullptr ? about(node->func) : about(node->kern);
}

CallSubject about(const CUgraphNodeParams* node) noexcept
{
    if (node->type != CU_GRAPH_NODE_TYPE_KERNEL) return {};
    return node->kernel.func != nullptr ? about(node->kernel.func) : about(node->kernel.kern);
}

// Each call's name, and its subject from its parameters `p`. Any of these calls may be the first to load a lazy module.
#define WARMGRAPH_LOADING_CALLS(X)                                                                                     \
    X(cuModuleLoad, made(*p.module))                                                                                   \
    X(cuModuleLoadData, made(*p.module))                                                                               \
    X(cuModuleLoadDataEx, made(*p.module))                                                                             \
    X(cuModuleLoadFatBinary, made(*p.module))                                                                          \
    X(cuModuleGetFunction, about(p.hmod))                                                                              \
    X(cuModuleGetGlobal_v2, about(p.hmod))                                                                             \
    X(cuModuleGetFunctionCount, about(p.mod))                                                                          \
    X(cuModuleEnumerateFunctions, about(p.mod))                                                                        \
    X(cuLibraryLoadData, about(*p.library))                                                                            \
    X(cuLibraryLoadFromFile, about(*p.library))                                                                        \
    X(cuLibraryGetKernel, about(*p.pKernel))                                                                           \
    X(cuLibraryGetModule, about(*p.pMod))                                                                              \
    X(cuLibraryGetGlobal, about(p.library))                                                                            \
    X(cuLibraryGetManaged, about(p.library))                                                                           \
    X(cuLibraryGetUnifiedFunction, about(p.library))                                                                   \
    X(cuLibraryGetKernelCount, about(p.lib))                                                                           \
    X(cuLibraryEnumerateKernels, about(p.lib))                                                                         \
    X(cuKernelGetFunction, about(*p.pFunc))                                                                            \
    X(cuKernelGetAttribute, about(p.kernel))                                                                           \
    X(cuKernelSetAttribute, about(p.kernel))                                                                           \
    X(cuKernelSetCacheConfig, about(p.kernel))                                                                         \
    X(cuKernelGetName, about(p.hfunc))                                                                                 \
    X(cuKernelGetParamInfo, about(p.kernel))                                                                           \
    X(cuFuncGetModule, about(*p.hmod))                                                                                 \
    X(cuFuncGetAttribute, about(p.hfunc))                                                                              \
    X(cuFuncSetAttribute, about(p.hfunc))                                                                              \
    X(cuFuncSetCacheConfig, about(p.hfunc))                                                                            \
    X(cuFuncGetName, about(p.hfunc))                                                                                   \
    X(cuFuncGetParamInfo, about(p.func))                                                                               \
    X(cuFuncLoad, about(p.function))                                                                                   \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessor, about(p.func))                                                      \
    X(cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, about(p.func))                                             \
    X(cuOccupancyMaxPotentialBlockSize, about(p.func))                                                                 \
    X(cuOccupancyMaxPotentialBlockSizeWithFlags, about(p.func))                                                        \
    X(cuOccupancyAvailableDynamicSMemPerBlock, about(p.func))                                                          \
    X(cuOccupancyMaxPotentialClusterSize, about(p.func))                                                               \
    X(cuOccupancyMaxActiveClusters, about(p.func))                                                                     \
    X(cuLaunchKernel, about(p.f))                                                                                      \
    X(cuLaunchKernel_ptsz, about(p.f))                                                                                 \
    X(cuLaunchKernelEx, about(p.f))                                                                                    \
    X(cuLaunchKernelEx_ptsz, about(p.f))                                                                               \
    X(cuLaunchCooperativeKernel, about(p.f))                                                                           \
    X(cuLaunchCooperativeKernel_ptsz, about(p.f))                                                                      \
    X(cuGraphAddKernelNode, about(p.nodeParams->func))                                                                 \
    X(cuGraphAddKernelNode_v2, about(p.nodeParams))                                                                    \
    X(cuGraphKernelNodeSetParams_v2, about(p.nodeParams))                                                              \
    X(cuGraphExecKernelNodeSetParams_v2, about(p.nodeParams))                                                          \
    X(cuGraphAddNode, about(p.nodeParams))                                                                             \
    X(cuGraphAddNode_v2, about(p.nodeParams))

template <class Params>
LoadedCode from_image(const void* params) noexcept
{
    const auto& p = *static_cast<const Params*>(params);
    return {.module = *p.module, .code = p.image};
}

} // namespace

std::span<const CUpti_CallbackId> loading_calls() noexcept
{
#define WARMGRAPH_CALL_ID(name, subject) CUPTI_DRIVER_TRACE_CBID_##name,
    static constexpr auto k_calls = std::to_array<CUpti_CallbackId>({WARMGRAPH_LOADING_CALLS(WARMGRAPH_CALL_ID)});
#undef WARMGRAPH_CALL_ID
    return k_calls;
}

bool is_loading_call(CUpti_CallbackId call) noexcept
{
    switch (call) {
#define WARMGRAPH_CALL_CASE(name, subject) case CUPTI_DRIVER_TRACE_CBID_##name:
        WARMGRAPH_LOADING_CALLS(WARMGRAPH_CALL_CASE)
#undef WARMGRAPH_CALL_CASE
        return true;
    default: return false;
    }
}

std::optional<CallSubject> subject_of(CUpti_CallbackId call, const void* params) noexcept
{
    switch (call) {
#define WARMGRAPH_CALL_SUBJECT(name, subject)                                                                          \
    case CUPTI_DRIVER_TRACE_CBID_##name: {                                                                             \
        const auto& p = *static_cast<const name##_params*>(params);                                                    \
        return subject;                                                                                                \
    }
        WARMGRAPH_LOADING_CALLS(WARMGRAPH_CALL_SUBJECT)
#undef WARMGRAPH_CALL_SUBJECT
    default: return std::nullopt;
    }
}

std::optional<VariableQuery> variable_query(CUpti_CallbackId call, const void* params) noexcept
{
    switch (call) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleGetGlobal_v2: {
        const auto& p = *static_cast<const cuModuleGetGlobal_v2_params*>(params);
        return VariableQuery{.module = p.hmod, .name = p.name};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetGlobal: {
        const auto& p = *static_cast<const cuLibraryGetGlobal_params*>(params);
        return VariableQuery{.library = p.library, .name = p.name};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryGetManaged: {
        const auto& p = *static_cast<const cuLibraryGetManaged_params*>(params);
        return VariableQuery{.library = p.library, .name = p.name};
    }
    default: return std::nullopt;
    }
}

std::optional<LoadedCode> loaded_code(CUpti_CallbackId call, const void* params) noexcept
{
    switch (call) {
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoad:
        return LoadedCode{.module = *static_cast<const cuModuleLoad_params*>(params)->module};
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadData: return from_image<cuModuleLoadData_params>(params);
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadDataEx: return from_image<cuModuleLoadDataEx_params>(params);
    case CUPTI_DRIVER_TRACE_CBID_cuModuleLoadFatBinary: {
        const auto& p = *static_cast<const cuModuleLoadFatBinary_params*>(params);
        return LoadedCode{.module = *p.module, .code = p.fatCubin};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadData: {
        const auto& p = *static_cast<const cuLibraryLoadData_params*>(params);
        return LoadedCode{.library = *p.library, .code = p.code};
    }
    case CUPTI_DRIVER_TRACE_CBID_cuLibraryLoadFromFile:
        return LoadedCode{.library = *static_cast<const cuLibraryLoadFromFile_params*>(params)->library};
    default: return std::nullopt;
    }
}

} // namespace warmgraph::backends::cuda
