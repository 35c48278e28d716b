// Graphs of the fake driver, and their nodes.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "driver_state.hpp"
#include "work.hpp"

struct CUgraphNode_st {
    CUgraph graph = nullptr;
    fake_cuda::Work work;
    /// cuGraphKernelNodeGetParams returns these pointers. They are valid until the node changes or is destroyed.
    std::vector<void*> pointers{};
    std::size_t buffer_size = 0;
};

struct CUgraph_st {
    struct Edge {
        CUgraphNode from = nullptr, to = nullptr;
        CUgraphEdgeData data{};
    };
    std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
    std::vector<Edge> edges;
    bool is_child = false; ///< whether the graph belongs to a node of another graph
};

namespace fake_cuda {

[[nodiscard]] long live_graphs();
[[nodiscard]] long live_execs();
[[nodiscard]] bool is_graph(CUgraph graph);
[[nodiscard]] bool is_node(CUgraphNode node);

[[nodiscard]] CUgraph create_graph();
void destroy_graph(CUgraph graph);
CUgraphNode add_node(CUgraph graph, Work work, std::span<const CUgraphNode> dependencies);
/// The nodes in an order in which each node comes after the nodes that it depends on. Empty when the graph has a cycle.
[[nodiscard]] std::vector<CUgraphNode> in_order(const CUgraph_st& graph);

/// The work of a node, if it is of this kind. Null when the handle is dead or the node is of another kind.
template <class Kind>
[[nodiscard]] Kind* work_of(CUgraphNode node)
{
    return is_node(node) ? std::get_if<Kind>(&node->work) : nullptr;
}

/// Reads one member of a node's work.
template <class Kind, class Member>
[[nodiscard]] CUresult read(CUgraphNode node, Member Kind::* member, Member* to)
{
    const Kind* const work = work_of<Kind>(node);
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *to = work->*member;
    return CUDA_SUCCESS;
}

} // namespace fake_cuda
