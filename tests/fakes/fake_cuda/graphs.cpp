// Driver functions that make and destroy graphs, list their nodes, and read and write their edges.
#include "graphs.hpp"

#include <algorithm>
#include <cstring>
#include <map>
#include <unordered_set>

#include "memory.hpp"

namespace fake_cuda {
namespace {

Handles<CUgraph_st>& graphs()
{
    static Handles<CUgraph_st> all;
    return all;
}

std::unordered_set<const CUgraphNode_st*>& nodes()
{
    static std::unordered_set<const CUgraphNode_st*> all;
    return all;
}

bool is_plain(const CUgraphEdgeData& data) { return data.from_port == 0 && data.to_port == 0 && data.type == 0; }

} // namespace

long live_graphs() { return graphs().size(); }
bool is_graph(CUgraph graph) { return graphs().has(graph); }
bool is_node(CUgraphNode node) { return nodes().contains(node); }

CUgraph create_graph() { return graphs().add(std::make_unique<CUgraph_st>()); }

void destroy_graph(CUgraph graph)
{
    for (const auto& node : graph->nodes) {
        nodes().erase(node.get());
        if (const auto* child = std::get_if<ChildWork>(&node->work)) destroy_graph(child->graph);
        if (const auto* made = std::get_if<AllocateWork>(&node->work))
            memory().free(made->params.dptr, MemoryKind::inner);
    }
    graphs().erase(graph);
}

CUgraphNode add_node(CUgraph graph, Work work, std::span<const CUgraphNode> dependencies)
{
    graph->nodes.push_back(std::make_unique<CUgraphNode_st>(CUgraphNode_st{graph, std::move(work)}));
    const CUgraphNode node = graph->nodes.back().get();
    nodes().insert(node);
    for (CUgraphNode from : dependencies) graph->edges.push_back({from, node, {}});
    return node;
}

std::vector<CUgraphNode> in_order(const CUgraph_st& graph)
{
    std::map<CUgraphNode, std::size_t> waits;
    std::map<CUgraphNode, std::vector<CUgraphNode>> after;
    for (const auto& edge : graph.edges) {
        ++waits[edge.to];
        after[edge.from].push_back(edge.to);
    }
    std::vector<CUgraphNode> order;
    for (const auto& node : graph.nodes) {
        if (waits[node.get()] == 0) order.push_back(node.get());
    }
    for (std::size_t i = 0; i < order.size(); ++i) {
        for (CUgraphNode next : after[order[i]]) {
            if (--waits[next] == 0) order.push_back(next);
        }
    }
    return order.size() == graph.nodes.size() ? order : std::vector<CUgraphNode>{};
}

} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuGraphCreate(CUgraph* graph, unsigned int flags)
{
    if (flags != 0) return CUDA_ERROR_INVALID_VALUE;
    *graph = create_graph();
    return CUDA_SUCCESS;
}

CUresult cuGraphDestroy(CUgraph graph)
{
    if (!is_graph(graph) || graph->is_child) return CUDA_ERROR_INVALID_VALUE;
    destroy_graph(graph);
    return CUDA_SUCCESS;
}

CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode* out, std::size_t* count)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    const std::size_t room = out == nullptr ? 0 : *count;
    for (std::size_t i = 0; i < room; ++i) out[i] = i < graph->nodes.size() ? graph->nodes[i].get() : nullptr;
    *count = out == nullptr ? graph->nodes.size() : std::min(room, graph->nodes.size());
    return CUDA_SUCCESS;
}

CUresult cuGraphGetEdges(CUgraph graph, CUgraphNode* from, CUgraphNode* to, CUgraphEdgeData* data, std::size_t* count)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    if (from == nullptr || to == nullptr) {
        *count = graph->edges.size();
        return CUDA_SUCCESS;
    }
    const std::size_t given = std::min(*count, graph->edges.size());
    for (std::size_t i = 0; i < given; ++i) {
        const auto& edge = graph->edges[i];
        if (data == nullptr && !is_plain(edge.data)) return CUDA_ERROR_LOSSY_QUERY;
        from[i] = edge.from;
        to[i] = edge.to;
        if (data != nullptr) data[i] = edge.data;
    }
    *count = given;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddDependencies(CUgraph graph, const CUgraphNode* from, const CUgraphNode* to,
                                const CUgraphEdgeData* data, std::size_t count)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    for (std::size_t i = 0; i < count; ++i) {
        const bool fits =
            is_node(from[i]) && is_node(to[i]) && from[i] != to[i] && from[i]->graph == graph && to[i]->graph == graph;
        const bool is_new = std::ranges::none_of(
            graph->edges, [&](const auto& edge) { return edge.from == from[i] && edge.to == to[i]; });
        if (!fits || !is_new) return CUDA_ERROR_INVALID_VALUE;
    }
    // This imitates a bug of the real driver (measured on 580.159): all edges of a call get the data of the first one.
    for (std::size_t i = 0; i < count; ++i)
        graph->edges.push_back({from[i], to[i], data != nullptr ? data[0] : CUgraphEdgeData{}});
    return CUDA_SUCCESS;
}

CUresult cuGraphNodeGetType(CUgraphNode node, CUgraphNodeType* type)
{
    if (!is_node(node)) return CUDA_ERROR_INVALID_VALUE;
    constexpr std::array k_types{
        CU_GRAPH_NODE_TYPE_EMPTY,         CU_GRAPH_NODE_TYPE_KERNEL,       CU_GRAPH_NODE_TYPE_MEMCPY,
        CU_GRAPH_NODE_TYPE_MEMSET,        CU_GRAPH_NODE_TYPE_EVENT_RECORD, CU_GRAPH_NODE_TYPE_WAIT_EVENT,
        CU_GRAPH_NODE_TYPE_HOST,          CU_GRAPH_NODE_TYPE_GRAPH,        CU_GRAPH_NODE_TYPE_MEM_ALLOC,
        CU_GRAPH_NODE_TYPE_MEM_FREE,      CU_GRAPH_NODE_TYPE_BATCH_MEM_OP, CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
        CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT};
    static_assert(k_types.size() == std::variant_size_v<Work>);
    *type = k_types[node->work.index()];
    return CUDA_SUCCESS;
}
