// The kinds of node that this backend supports. Each has its own file, with functions to read a node, add it to a
// graph, and change its parameters.
#pragma once

#include <optional>
#include <span>
#include <variant>

#include "graph/nodes/copy_node.hpp"
#include "graph/nodes/event_nodes.hpp"
#include "graph/nodes/fill_node.hpp"
#include "graph/nodes/host_node.hpp"
#include "graph/nodes/kernel_node.hpp"
#include "graph/nodes/kernel_reader.hpp"
#include "graph/nodes/memory_operations_node.hpp"
#include "graph/nodes/node_calls.hpp"
#include "graph/nodes/semaphores_node.hpp"

namespace warmgraph::backends::cuda {

/// The driver's structures, reused: after reserve() for all nodes, filling them allocates nothing.
struct NodeBuffers {
    KernelParams kernels;
    NativeOperations operations;
    NativeSemaphores semaphores;

    template <class Work>
    void reserve(const Work&)
    {
    }
    void reserve(const RawKernel& kernel) { kernels.reserve(kernel.params.size()); }
    void reserve(const RawMemoryOperations& batch) { operations.reserve(batch.operations.size()); }
    void reserve(const RawSemaphores& work) { semaphores.reserve(work.uses.size()); }
};

// An exec keeps each node's last work; for a kernel only the fixed part, because parameters are many.

template <class Work>
struct InstantiatedForm {
    using Type = Work;
};
template <>
struct InstantiatedForm<RawKernel> {
    using Type = InstantiatedKernel;
};
template <class Work>
const Work& kept(const Work& work, const KernelFunction*)
{
    return work;
}

namespace detail {
template <class... Work>
std::variant<typename InstantiatedForm<Work>::Type...> kept_variant(const std::variant<Work...>&);
} // namespace detail
using KeptWork = decltype(detail::kept_variant(std::declval<RawWork>()));

[[nodiscard]] inline Result<void> add(AddCall& call, const RawEmpty&)
{
    return call("cuGraphAddEmptyNode", call.core.driver->cuGraphAddEmptyNode);
}
[[nodiscard]] inline Result<void> change(const ChangeCall&, RawEmpty&, const RawEmpty&) { return {}; }

/// Reads a node's work. nullopt: the node has no work of its own (an allocation, a child graph), or has an unknown
/// kind. `allocations` are the graph's allocations.
[[nodiscard]] inline std::optional<Result<RawWork>> read_node(const Core& core, KernelReader& kernels,
                                                              std::span<const RawAllocation> allocations,
                                                              CUgraphNodeType type, CUgraphNode node)
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_EMPTY: return RawEmpty{};
    case CU_GRAPH_NODE_TYPE_KERNEL: return kernels.read(node);
    case CU_GRAPH_NODE_TYPE_MEMCPY: return read_copy(core, node, allocations);
    case CU_GRAPH_NODE_TYPE_MEMSET: return read_fill(core, node);
    case CU_GRAPH_NODE_TYPE_HOST: return read_host(*core.driver, node);
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return read_event_record(*core.driver, node);
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return read_event_wait(*core.driver, node);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: return read_signal(*core.driver, node);
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return read_wait(*core.driver, node);
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return read_operations(core, node);
    default: return std::nullopt;
    }
}

} // namespace warmgraph::backends::cuda
