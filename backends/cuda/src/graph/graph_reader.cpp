#include "graph/graph_reader.hpp"

#include <algorithm>
#include <map>

#include "graph/graph_flatten.hpp"
#include "graph/nodes/nodes.hpp"

namespace warmgraph::backends::cuda {
namespace {

/// Returns e.g. "memset (node 3)"; for a kernel only the number, because the reader adds its name.
std::string place_of(CUgraphNodeType type, std::size_t index)
{
    if (type == CU_GRAPH_NODE_TYPE_KERNEL) return fmt::format("node {}", index);
    return fmt::format("{} (node {})", kind_name(type), index);
}

class Reader {
public:
    explicit Reader(Core& core) noexcept : m_core(core), m_driver(*core.driver), m_kernels(core) {}

    Result<RawGraph> read(CUgraph graph)
    {
        auto flat = flatten(m_driver, graph);
        if (!flat) return std::unexpected(flat.error());
        m_graph.nodes.reserve(flat->size());
        for (FlatNode& node : *flat) {
            auto work = read_work(node);
            if (!work) return within(place_of(node.type, m_graph.nodes.size()), work.error());
            m_graph.nodes.push_back({std::move(*work), std::move(node.dependencies), std::move(node.edges)});
        }
        if (!m_allocated.empty())
            return fail(
                ErrorCode::not_recordable,
                "memory allocation (node {}): {:#x} is not freed in the same graph, so work outside may use it; free "
                "it while capturing",
                m_allocated.begin()->second, m_allocated.begin()->first);
        m_graph.allocations = merged(m_graph.allocations);
        return std::move(m_graph);
    }

private:
    Result<RawWork> read_work(const FlatNode& node)
    {
        if (auto work = read_node(m_core, m_kernels, m_graph.allocations, node.type, node.handle))
            return std::move(*work);
        switch (node.type) {
        case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return read_allocation(node.handle);
        case CU_GRAPH_NODE_TYPE_MEM_FREE: return read_free(node.handle);
        case CU_GRAPH_NODE_TYPE_CONDITIONAL:
            return fail(ErrorCode::not_recordable,
                        "the driver does not give the conditional node's condition and bodies back; capture the taken "
                        "branch, or leave this part out of the capture");
        default:
            return fail(ErrorCode::not_recordable, "node type {} is not known to this version of warmgraph",
                        static_cast<int>(node.type));
        }
    }

    Result<RawWork> read_allocation(CUgraphNode node)
    {
        CUDA_MEM_ALLOC_NODE_PARAMS native{};
        auto got = m_driver.call("cuGraphMemAllocNodeGetParams", m_driver.cuGraphMemAllocNodeGetParams, node, &native);
        if (!got) return std::unexpected(got.error());
        const CUmemLocation& location = native.poolProps.location;
        if (location.type != CU_MEM_LOCATION_TYPE_DEVICE || location.id != m_core.device)
            return fail(ErrorCode::not_recordable, "it allocates in location {} of type {}, expected device {}",
                        location.id, static_cast<int>(location.type), m_core.device);
        const auto index = static_cast<std::uint32_t>(m_graph.nodes.size());
        if (const auto [at, added] = m_allocated.emplace(native.dptr, index); !added)
            return fail(ErrorCode::not_recordable,
                        "{:#x} was already allocated by node {}, and is not freed before this node", native.dptr,
                        at->second);
        m_graph.allocations.push_back({{Address::from_flat(native.dptr), native.bytesize}});
        return RawEmpty{};
    }

    Result<RawWork> read_free(CUgraphNode node)
    {
        CUdeviceptr address = 0;
        auto got = m_driver.call("cuGraphMemFreeNodeGetParams", m_driver.cuGraphMemFreeNodeGetParams, node, &address);
        if (!got) return std::unexpected(got.error());
        if (m_allocated.erase(address) == 0)
            return fail(
                ErrorCode::not_recordable,
                "{:#x} was not allocated in the same graph; allocate it while capturing, or free it in the stream",
                address);
        return RawEmpty{};
    }

    Core& m_core;
    const Driver& m_driver;
    KernelReader m_kernels;
    RawGraph m_graph;
    std::map<CUdeviceptr, std::uint32_t> m_allocated; // allocations that are not freed yet, with their nodes
};

/// Refuses a heap whose size has changed since the device was opened, because the guard fact has the size at that time.
Result<void> check_malloc_heap(const Core& core)
{
    std::size_t now = 0;
    auto asked = core.driver->call("cuCtxGetLimit", core.driver->cuCtxGetLimit, &now, CU_LIMIT_MALLOC_HEAP_SIZE);
    if (!asked || now == core.malloc_heap) return asked;
    return fail(
        ErrorCode::not_recordable,
        "the heap of malloc in device code (CU_LIMIT_MALLOC_HEAP_SIZE) was {} bytes when the device was opened, and is "
        "{} now, but a replaying process would not know this size: set it before the device is opened",
        core.malloc_heap, now);
}

} // namespace

Result<RawGraph> read_graph(Core& core, CUgraph graph)
{
    if (graph == nullptr) return fail(ErrorCode::invalid_argument, "no graph to read: the handle is null");
    const CurrentContext current(core);
    const OutsideCapture outside(core);
    if (auto checked = check_malloc_heap(core); !checked) return std::unexpected(checked.error());
    return Reader(core).read(graph);
}

} // namespace warmgraph::backends::cuda
