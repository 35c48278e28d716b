// Driver functions for nodes that own child graphs or memory.
#include <map>

#include "graphs.hpp"
#include "memory.hpp"

namespace fake_cuda {
namespace {

bool owns_memory(const CUgraph_st& graph)
{
    for (const auto& node : graph.nodes) {
        if (std::holds_alternative<AllocateWork>(node->work) || std::holds_alternative<FreeWork>(node->work))
            return true;
    }
    return false;
}

CUgraph clone(const CUgraph_st& graph)
{
    const CUgraph copy = create_graph();
    std::map<CUgraphNode, CUgraphNode> copies;
    for (const auto& node : graph.nodes) {
        Work work = node->work;
        if (auto* child = std::get_if<ChildWork>(&work)) {
            child->graph = clone(*child->graph);
            child->graph->is_child = true;
        }
        copies[node.get()] = add_node(copy, std::move(work), {});
    }
    for (const auto& edge : graph.edges) copy->edges.push_back({copies.at(edge.from), copies.at(edge.to), edge.data});
    return copy;
}

} // namespace
} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuGraphAddChildGraphNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                  CUgraph child)
{
    if (!is_graph(graph) || !is_graph(child)) return CUDA_ERROR_INVALID_VALUE;
    if (owns_memory(*child)) return CUDA_ERROR_NOT_SUPPORTED;
    const CUgraph copy = clone(*child);
    copy->is_child = true;
    *node = add_node(graph, ChildWork{copy}, {dependencies, count});
    return CUDA_SUCCESS;
}

CUresult cuGraphChildGraphNodeGetGraph(CUgraphNode node, CUgraph* child)
{
    return read(node, &ChildWork::graph, child);
}

CUresult cuGraphAddMemAllocNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                CUDA_MEM_ALLOC_NODE_PARAMS* params)
{
    if (!is_graph(graph) || params->bytesize == 0) return CUDA_ERROR_INVALID_VALUE;
    params->dptr = memory().allocate(params->bytesize, MemoryKind::inner);
    if (params->dptr == 0) return CUDA_ERROR_OUT_OF_MEMORY;
    *node = add_node(graph, AllocateWork{*params}, {dependencies, count});
    return CUDA_SUCCESS;
}

CUresult cuGraphMemAllocNodeGetParams(CUgraphNode node, CUDA_MEM_ALLOC_NODE_PARAMS* params)
{
    return read(node, &AllocateWork::params, params);
}

CUresult cuGraphAddMemFreeNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                               CUdeviceptr address)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    *node = add_node(graph, FreeWork{address}, {dependencies, count});
    return CUDA_SUCCESS;
}

CUresult cuGraphMemFreeNodeGetParams(CUgraphNode node, CUdeviceptr* address)
{
    return read(node, &FreeWork::address, address);
}
