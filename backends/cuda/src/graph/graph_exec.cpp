#include "graph/graph_exec.hpp"

#include <algorithm>

#include "graph/graph_reader.hpp"
#include "graph/host_pages.hpp"

namespace warmgraph::backends::cuda {
namespace {

std::unexpected<Error> out_of_memory() noexcept
{
    return std::unexpected(Error{ErrorCode::out_of_memory, "no host memory"});
}

/// Priorities of nodes count only where the graph is instantiated for them; else the launching stream's holds for all, as
/// in a graph that nobody gave priorities.
unsigned long long flags_of(const RawGraph& graph) noexcept
{
    const auto has_priority = [](const RawNode& node) {
        const auto* const kernel = std::get_if<RawKernel>(&node.work);
        return kernel != nullptr && std::ranges::any_of(kernel->attributes, [](const RawAttribute& attribute) {
                   return attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
               });
    };
    return std::ranges::any_of(graph.nodes, has_priority)
               ? static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY)
               : 0ULL;
}

} // namespace

NativeExec::~NativeExec()
{
    if (m_exec == nullptr) return;
    const CurrentContext current(m_core);
    static_cast<void>(m_core.driver->status("cuGraphExecDestroy", m_core.driver->cuGraphExecDestroy, m_exec));
}

Result<void> NativeExec::instantiate(CUgraph graph, std::span<const CUgraphNode> nodes, unsigned long long flags)
{
    const Driver& driver = *m_core.driver;
    const CurrentContext current(m_core);
    const OutsideCapture outside(m_core);
    if (driver.cuGraphInstantiateWithParams == nullptr)
        return driver.call("cuGraphInstantiate", driver.cuGraphInstantiate, &m_exec, graph, flags);
    CUDA_GRAPH_INSTANTIATE_PARAMS params{};
    params.flags = flags;
    auto made =
        driver.call("cuGraphInstantiateWithParams", driver.cuGraphInstantiateWithParams, &m_exec, graph, &params);
    if (made && params.result_out == CUDA_GRAPH_INSTANTIATE_SUCCESS) return {};
    if (made) // not by the documentation; a null exec must never be launched
        made = fail(ErrorCode::driver_failed, "cuGraphInstantiateWithParams gave result {}",
                    static_cast<int>(params.result_out));
    const auto at = std::ranges::find(nodes, params.hErrNode_out);
    if (params.hErrNode_out == nullptr || at == nodes.end()) return made;
    return within(fmt::format("node {}", at - nodes.begin()), made.error());
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::make(Core& core, const RawGraph& graph)
{
    constexpr std::size_t k_bytes_of_node = 8192, k_least_nodes = 64;
    if (graph.nodes.size() >= k_least_nodes) grow_heap(graph.nodes.size() * k_bytes_of_node);
    const Core::Building building(core);
    auto built = build_graph(core, graph);
    if (!built) return std::unexpected(built.error());
    std::unique_ptr<CudaGraphExec> exec(new CudaGraphExec(core, std::move(*built)));
    auto instantiated = exec->m_exec.instantiate(exec->m_built.graph.get(), exec->m_built.nodes, flags_of(graph));
    if (!instantiated) return within(fmt::format("instantiate {} nodes", graph.nodes.size()), instantiated.error());
    exec->remember(graph);
    return exec;
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::adopt(Core& core, CUgraph graph)
{
    if (graph == nullptr) return fail(ErrorCode::invalid_argument, "no graph to instantiate: the handle is null");
    // As the restored one that it is compared with; of a graph that cannot be read nothing is.
    const auto read = read_graph(core, graph);
    return instantiate_foreign(core, graph, read ? flags_of(*read) : 0);
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::make_captured(Core& core, const RawGraph& graph)
{
    // The driver's handles are not const; what is instantiated stays as it is.
    auto* const native = static_cast<CUgraph>(const_cast<void*>(graph.native.get()));
    auto exec = instantiate_foreign(core, native, flags_of(graph));
    if (!exec) return within("instantiate the captured graph", exec.error());
    (*exec)->m_captured = graph.native;
    return exec;
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::instantiate_foreign(Core& core, CUgraph graph,
                                                                          unsigned long long flags)
{
    std::unique_ptr<CudaGraphExec> exec(new CudaGraphExec(core, BuiltGraph{NativeGraph(*core.driver), {}, {}, {}}));
    if (auto instantiated = exec->m_exec.instantiate(graph, {}, flags); !instantiated)
        return std::unexpected(instantiated.error());
    return exec;
}

void CudaGraphExec::remember(const RawGraph& graph)
{
    m_nodes.reserve(graph.nodes.size());
    for (const RawNode& node : graph.nodes)
        std::visit(
            [&](const auto& work) {
                m_nodes.emplace_back(kept(work, m_built.kernels[m_nodes.size()]));
                m_buffers.reserve(work);
            },
            node.work);
}

Result<void> CudaGraphExec::launch(Stream& stream) noexcept
try {
    auto* const native = static_cast<CUstream>(stream.native());
    if (native == nullptr) return fail(ErrorCode::invalid_argument, "launch of a graph in a stream of another device");
    if (stream.is_capturing()) return fail(ErrorCode::not_recordable, "launch of a graph in a stream that captures");
    return m_core.driver->call("cuGraphLaunch", m_core.driver->cuGraphLaunch, m_exec.get(), native);
} catch (...) {
    return out_of_memory();
}

Result<void> CudaGraphExec::upload() noexcept
try {
    const Driver& driver = *m_core.driver;
    const CurrentContext current(m_core);
    const OutsideCapture outside(m_core);
    auto done = driver.call("cuGraphUpload", driver.cuGraphUpload, m_exec.get(), m_core.transfers);
    // A launch in another stream is in order with launches of the exec; cuda.h does not say so of uploads.
    if (done) done = driver.call("cuStreamSynchronize", driver.cuStreamSynchronize, m_core.transfers);
    return done;
} catch (...) {
    return out_of_memory();
}

Result<void> CudaGraphExec::update(std::uint32_t node, const RawWork& work) noexcept
try {
    if (m_built.graph.get() == nullptr)
        return fail(ErrorCode::unsupported,
                    "update of a graph that was not built here; instantiate the one that was read");
    if (node >= m_nodes.size())
        return fail(ErrorCode::invalid_argument, "update of node {}, the graph has {}", node, m_nodes.size());
    if (m_nodes[node].index() != work.index())
        return fail(ErrorCode::invalid_argument,
                    "update changes the kind of a node; instantiate another graph for that");
    const CurrentContext current(m_core);
    const ChangeCall call{m_core, m_exec.get(), m_built.nodes[node], m_buffers};
    auto changed = std::visit(
        [&]<class Work>(const Work& after) {
            return change(call, std::get<typename KeptAs<Work>::Type>(m_nodes[node]), after);
        },
        work);
    if (!changed) [[unlikely]]
        return within(fmt::format("update of node {}", node), changed.error());
    return changed;
} catch (...) {
    return out_of_memory();
}

} // namespace warmgraph::backends::cuda
