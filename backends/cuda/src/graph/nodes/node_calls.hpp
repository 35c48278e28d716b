// What each kind of node is given to add itself to a graph, and to change itself in an exec.
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
    std::span<const CUgraphNode> dependencies; ///< whose edges have no data
    CUgraphNode node = nullptr;                ///< the added one
    const KernelFunction* kernel = nullptr;    ///< of a kernel node

    template <class... Params, class... Args>
    [[nodiscard]] Result<void> operator()(const char* name,
                                          CUresult (*function)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t,
                                                               Params...),
                                          Args... args)
    {
        return core.driver->call(name, function, &node, graph, dependencies.data(), dependencies.size(), args...);
    }
};

/// Gives a node of an exec other parameters.
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

/// What the driver does not let an exec change (a copy between memory of other kinds: measured, cuMemMap's against
/// cuMemAlloc's), another exec can hold. A driver that is broken says so again there.
[[nodiscard]] inline Result<void> changed_or_unsupported(Result<void> set)
{
    if (!set && set.error().code == ErrorCode::driver_failed)
        return fail(ErrorCode::unsupported, "{}; instantiate another graph", set.error().message);
    return set;
}

} // namespace warmgraph::backends::cuda
