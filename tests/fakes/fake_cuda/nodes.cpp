// Driver functions that add nodes of each kind, and read them.
#include <cstring>

#include "fake_cuda.h"
#include "graphs.hpp"
#include "memory.hpp"
#include "modules.hpp"
#include "streams.hpp"

namespace fake_cuda {
namespace {

/// Adds a node to a graph, with dependencies on other nodes. The graph and these nodes must be live.
CUresult add(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count, Work work)
{
    if (!is_graph(graph)) return CUDA_ERROR_INVALID_VALUE;
    const std::span<const CUgraphNode> after(dependencies, count);
    for (CUgraphNode before : after) {
        if (!is_node(before) || before->graph != graph) return CUDA_ERROR_INVALID_VALUE;
    }
    *node = add_node(graph, std::move(work), after);
    return CUDA_SUCCESS;
}

/// The number of an attribute. A driver may have more attributes than the header's type.
std::uint32_t number_of(const CUlaunchAttributeID& id)
{
    std::uint32_t number = 0;
    std::memcpy(&number, &id, sizeof number);
    return number;
}

bool is_kernel_attribute(std::uint32_t id)
{
    switch (id) {
    case CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW:
    case CU_LAUNCH_ATTRIBUTE_COOPERATIVE:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION:
    case CU_LAUNCH_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE:
    case CU_LAUNCH_ATTRIBUTE_PRIORITY:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP:
    case CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN:
    case CU_LAUNCH_ATTRIBUTE_DEVICE_UPDATABLE_KERNEL_NODE:
    case CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT: return true; // readable on the H200
    default: return id == FAKE_CUDA_LATER_ATTRIBUTE;
    }
}

CUlaunchAttributeValue default_of(std::uint32_t id)
{
    CUlaunchAttributeValue value{};
    if (id == CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP) value.memSyncDomainMap = {0, 1};
    return value;
}

} // namespace
} // namespace fake_cuda

using namespace fake_cuda;

CUresult cuGraphAddEmptyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count)
{
    return add(node, graph, dependencies, count, EmptyWork{});
}

CUresult cuGraphAddKernelNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                              const CUDA_KERNEL_NODE_PARAMS* params)
{
    FAKE_CUDA_CHECK(require_context());
    KernelWork work;
    FAKE_CUDA_CHECK(make_kernel(work, *params));
    return add(node, graph, dependencies, count, std::move(work));
}

CUresult cuGraphKernelNodeGetParams(CUgraphNode node, CUDA_KERNEL_NODE_PARAMS* params)
{
    auto* const work = work_of<KernelWork>(node);
    if (work == nullptr) return CUDA_ERROR_INVALID_VALUE;
    *params = {};
    params->func = work->function;
    params->gridDimX = work->grid[0], params->gridDimY = work->grid[1], params->gridDimZ = work->grid[2];
    params->blockDimX = work->block[0], params->blockDimY = work->block[1], params->blockDimZ = work->block[2];
    params->sharedMemBytes = work->shared;
    node->pointers.clear();
    if (work->is_packed) {
        node->buffer_size = work->buffer.size();
        node->pointers = {CU_LAUNCH_PARAM_BUFFER_POINTER, work->buffer.data(), CU_LAUNCH_PARAM_BUFFER_SIZE,
                          &node->buffer_size, CU_LAUNCH_PARAM_END};
        params->extra = node->pointers.data();
    } else {
        for (const auto& argument : work->function->arguments)
            node->pointers.push_back(work->buffer.data() + argument.offset);
        params->kernelParams = node->pointers.data();
    }
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeGetAttribute(CUgraphNode node, CUkernelNodeAttrID native, CUkernelNodeAttrValue* value)
{
    const std::uint32_t id = number_of(native);
    const auto* const work = work_of<KernelWork>(node);
    if (work == nullptr || !is_kernel_attribute(id)) return CUDA_ERROR_INVALID_VALUE;
    const auto found = work->attributes.find(id);
    *value = found == work->attributes.end() ? default_of(id) : found->second;
    return CUDA_SUCCESS;
}

CUresult cuGraphKernelNodeSetAttribute(CUgraphNode node, CUkernelNodeAttrID native, const CUkernelNodeAttrValue* value)
{
    const std::uint32_t id = number_of(native);
    auto* const work = work_of<KernelWork>(node);
    if (work == nullptr || !is_kernel_attribute(id)) return CUDA_ERROR_INVALID_VALUE;
    work->attributes[id] = *value;
    return CUDA_SUCCESS;
}

CUresult cuGraphAddMemcpyNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                              const CUDA_MEMCPY3D* params, CUcontext)
{
    FAKE_CUDA_CHECK(check(*params));
    return add(node, graph, dependencies, count, CopyWork{*params});
}

CUresult cuGraphMemcpyNodeGetParams(CUgraphNode node, CUDA_MEMCPY3D* params)
{
    return read(node, &CopyWork::params, params);
}

CUresult cuGraphAddMemsetNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                              const CUDA_MEMSET_NODE_PARAMS* params, CUcontext)
{
    FAKE_CUDA_CHECK(check(*params));
    return add(node, graph, dependencies, count, FillWork{*params});
}

CUresult cuGraphMemsetNodeGetParams(CUgraphNode node, CUDA_MEMSET_NODE_PARAMS* params)
{
    return read(node, &FillWork::params, params);
}

CUresult cuGraphAddEventRecordNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                   CUevent event)
{
    if (!is_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    return add(node, graph, dependencies, count, RecordWork{event});
}

CUresult cuGraphEventRecordNodeGetEvent(CUgraphNode node, CUevent* event)
{
    return read(node, &RecordWork::event, event);
}

CUresult cuGraphAddEventWaitNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                                 CUevent event)
{
    if (!is_event(event)) return CUDA_ERROR_INVALID_HANDLE;
    return add(node, graph, dependencies, count, WaitWork{event});
}

CUresult cuGraphEventWaitNodeGetEvent(CUgraphNode node, CUevent* event) { return read(node, &WaitWork::event, event); }

CUresult cuGraphAddHostNode(CUgraphNode* node, CUgraph graph, const CUgraphNode* dependencies, std::size_t count,
                            const CUDA_HOST_NODE_PARAMS* params)
{
    if (params->fn == nullptr) return CUDA_ERROR_INVALID_VALUE;
    return add(node, graph, dependencies, count, HostWork{*params});
}

CUresult cuGraphHostNodeGetParams(CUgraphNode node, CUDA_HOST_NODE_PARAMS* params)
{
    return read(node, &HostWork::params, params);
}
