// Instantiated graphs of the fake driver.
#include <algorithm>
#include <map>

#include "fake_cuda.h"
#include "faults.hpp"
#include "graphs.hpp"
#include "modules.hpp"
#include "semaphores.hpp"
#include "streams.hpp"

struct CUgraphExec_st {
    std::vector<fake_cuda::Work> works; ///< the work of all nodes, in the order in which they run
    std::map<CUgraphNode, std::size_t> places;
};

namespace fake_cuda {
namespace {

unsigned long long& last_flags()
{
    static unsigned long long flags = 0;
    return flags;
}

Handles<CUgraphExec_st>& execs()
{
    static Handles<CUgraphExec_st> all;
    return all;
}

/// Appends the work of a graph. The nodes of a child graph are appended one by one, so that the exec owns all its work.
void append(CUgraphExec_st& exec, const CUgraph_st& graph)
{
    for (CUgraphNode node : in_order(graph)) {
        exec.places[node] = exec.works.size();
        if (const auto* child = std::get_if<ChildWork>(&node->work))
            append(exec, *child->graph);
        else
            exec.works.push_back(node->work);
    }
}

CUresult instantiate(CUgraphExec* exec, CUgraph graph)
{
    FAKE_CUDA_CHECK(require_context());
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    if (in_order(*graph).empty() && !graph->nodes.empty()) return CUDA_ERROR_INVALID_VALUE; // the graph has a cycle
    auto made = std::make_unique<CUgraphExec_st>();
    append(*made, *graph);
    *exec = execs().add(std::move(made));
    return CUDA_SUCCESS;
}

/// The exec's work for a node of the original graph. Null when a handle is wrong, or when the node is of another kind.
template <class Kind>
Kind* find(CUgraphExec exec, CUgraphNode node)
{
    if (!execs().has(exec) || !is_node(node)) return nullptr;
    const auto place = exec->places.find(node);
    return place == exec->places.end() ? nullptr : std::get_if<Kind>(&exec->works[place->second]);
}

/// Sets a member of the exec's work for a node, if the new value is valid.
template <class Kind, class Member>
CUresult set(CUgraphExec exec, CUgraphNode node, Member Kind::* member, const Member& value, bool is_good)
{
    Kind* const work = find<Kind>(exec, node);
    if (work == nullptr || !is_good) return CUDA_ERROR_INVALID_VALUE;
    work->*member = value;
    return CUDA_SUCCESS;
}

} // namespace

long live_execs() { return execs().size(); }

} // namespace fake_cuda

using namespace fake_cuda;

FAKE_CUDA_EXPORT unsigned long long fake_cuda_instantiate_flags(void) { return last_flags(); }

CUresult cuGraphInstantiate(CUgraphExec* exec, CUgraph graph, unsigned long long flags)
{
    last_flags() = flags;
    return instantiate(exec, graph);
}

CUresult cuGraphInstantiateWithParams(CUgraphExec* exec, CUgraph graph, CUDA_GRAPH_INSTANTIATE_PARAMS* params)
{
    last_flags() = params->flags;
    const CUresult status = instantiate(exec, graph);
    params->hErrNode_out = nullptr;
    params->result_out = status == CUDA_SUCCESS ? CUDA_GRAPH_INSTANTIATE_SUCCESS : CUDA_GRAPH_INSTANTIATE_ERROR;
    return status;
}

CUresult cuGraphExecDestroy(CUgraphExec exec) { return execs().erase(exec) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE; }

CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
    if (!execs().has(exec) || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    return CUDA_SUCCESS;
}

// No context must be current, because the stream has one. NVIDIA's documentation does not list
// CUDA_ERROR_INVALID_CONTEXT for this call.
CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
    if (!execs().has(exec) || !is_stream(stream)) return CUDA_ERROR_INVALID_HANDLE;
    if (is_capturing(stream)) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for (const Work& work : exec->works) {
        const auto* const kernel = std::get_if<KernelWork>(&work);
        if (kernel != nullptr && !is_function(kernel->function)) return CUDA_ERROR_INVALID_HANDLE;
    }
    for (const Work& work : exec->works) run(work);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecKernelNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_KERNEL_NODE_PARAMS* params)
{
    auto* const work = find<KernelWork>(exec, node);
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    KernelWork changed;
    FAKE_CUDA_CHECK(make_kernel(changed, *params));
    changed.attributes = work->attributes;
    *work = std::move(changed);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecMemcpyNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMCPY3D* params, CUcontext)
{
    return set(exec, node, &CopyWork::params, *params, check(*params) == CUDA_SUCCESS);
}

CUresult cuGraphExecMemsetNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_MEMSET_NODE_PARAMS* params,
                                        CUcontext)
{
    return set(exec, node, &FillWork::params, *params, check(*params) == CUDA_SUCCESS);
}

CUresult cuGraphExecEventRecordNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set(exec, node, &RecordWork::event, event, is_event(event));
}

CUresult cuGraphExecEventWaitNodeSetEvent(CUgraphExec exec, CUgraphNode node, CUevent event)
{
    return set(exec, node, &WaitWork::event, event, is_event(event));
}

CUresult cuGraphExecHostNodeSetParams(CUgraphExec exec, CUgraphNode node, const CUDA_HOST_NODE_PARAMS* params)
{
    return set(exec, node, &HostWork::params, *params, params->fn != nullptr);
}

CUresult cuGraphExecBatchMemOpNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                            const CUDA_BATCH_MEM_OP_NODE_PARAMS* params)
{
    auto* const work = find<BatchWork>(exec, node);
    if (work == nullptr || params->count != work->operations.size()) return CUDA_ERROR_INVALID_VALUE;
    BatchWork changed;
    FAKE_CUDA_CHECK(make_batch(changed, *params));
    for (std::size_t i = 0; i < changed.operations.size(); ++i) {
        if (changed.operations[i].operation != work->operations[i].operation) return CUDA_ERROR_INVALID_VALUE;
    }
    *work = std::move(changed);
    return CUDA_SUCCESS;
}

CUresult cuGraphExecExternalSemaphoresSignalNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                          const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params)
{
    auto* const work = find<SignalWork>(exec, node);
    return work == nullptr ? CUDA_ERROR_INVALID_VALUE : change(*work, *params);
}

CUresult cuGraphExecExternalSemaphoresWaitNodeSetParams(CUgraphExec exec, CUgraphNode node,
                                                        const CUDA_EXT_SEM_WAIT_NODE_PARAMS* params)
{
    auto* const work = find<SemaphoreWaitWork>(exec, node);
    return work == nullptr ? CUDA_ERROR_INVALID_VALUE : change(*work, *params);
}
