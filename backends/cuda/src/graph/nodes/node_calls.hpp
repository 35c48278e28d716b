// Arguments for adding a node of any kind to a graph, and for changing it in an exec.
#pragma once

#include <span>

#include "device/core.hpp"

namespace warmgraph::backends::cuda {

struct KernelFunction;
class KernelFunctions;
struct NodeBuffers;

/// Adds one node.
struct AddCall {
    Core& core;
    CUgraph graph;
    KernelFunctions& functions;
    NodeBuffers& buffers;
    std::span<const CUgraphNode> dependencies; ///< dependencies whose edges have no data
    CUgraphNode node = nullptr;                ///< the node that was added
    const KernelFunction* kernel = nullptr;    ///< set for kernel nodes

    template <class... Params, class... Args>
    [[nodiscard]] Result<void> operator()(const char* name,
                                          CUresult (*function)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,
                                                               Params...),
                                          Args... args)
    {
        return core.driver->call(name, function, &node, graph, dependencies.data(), dependencies.size(), args...);
    }
};

/// Gives a node of an exec new parameters.
struct ChangeCall {
    const Core& core;
    CUgraphExec exec;
    CUgraphNode node;
    NodeBuffers& buffers;

    template <class... Params, class... Args>
    [[nodiscard]] Result<void> operator()(const char* name, CUresult (*function)(CUgraphExec, CUgraphNode, Params...),
                                          Args... args) const
    {
        return core.driver->call(name, function, exec, node, args...);
    }
};

/// Turns a driver's refusal to change a node into the error `unsupported`, because another exec can hold the change
/// (measured: copies between memory of cuMemMap and of cuMemAlloc). If the driver is broken, that exec fails too.
[[nodiscard]] inline Result<void> changed_or_unsupported(Result<void> set)
{
    if (!set && set.error().code == ErrorCode::driver_failed)
        return fail(ErrorCode::unsupported, "{}; instantiate another graph", set.error().message);
    return set;
}

} // namespace warmgraph::backends::cuda
