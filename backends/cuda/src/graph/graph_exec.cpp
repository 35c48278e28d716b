#include "graph/graph_exec.hpp"

#include <algorithm>

namespace warmgraph::backends::cuda {
namespace {

std::unexpected<Error> out_of_memory() noexcept
{
    return std::unexpected(Error{ErrorCode::out_of_memory, "no host memory"});
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
    if (made) // a null exec is undocumented here, but must never be launched
        made = fail(ErrorCode::driver_failed, "cuGraphInstantiateWithParams failed with result {}",
                    static_cast<int>(params.result_out));
    const auto at = std::ranges::find(nodes, params.hErrNode_out);
    if (params.hErrNode_out == nullptr || at == nodes.end()) return made;
    return within(fmt::format("node {}", at - nodes.begin()), made.error());
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::make(Core& core, BuiltGraph built)
{
    std::unique_ptr<CudaGraphExec> exec(new CudaGraphExec(core, std::move(built)));
    const BuiltGraph& own = exec->m_built;
    auto instantiated = exec->m_exec.instantiate(own.graph.get(), own.nodes, own.instantiate_flags);
    if (!instantiated) return within(fmt::format("instantiate {} nodes", own.nodes.size()), instantiated.error());
    return exec;
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::make_captured(Core& core, const RawGraph& graph)
{
    // The driver's handles are not const, but instantiating does not change the graph.
    auto* const native = static_cast<CUgraph>(const_cast<void*>(graph.native.get()));
    auto exec = instantiate_foreign(core, native, instantiate_flags_of(graph));
    if (!exec) return within("instantiate the captured graph", exec.error());
    (*exec)->m_captured = graph.native;
    return exec;
}

Result<std::unique_ptr<CudaGraphExec>> CudaGraphExec::instantiate_foreign(Core& core, CUgraph graph,
                                                                          unsigned long long flags)
{
    std::unique_ptr<CudaGraphExec> exec(new CudaGraphExec(core, BuiltGraph{.graph = NativeGraph(*core.driver)}));
    if (auto instantiated = exec->m_exec.instantiate(graph, {}, flags); !instantiated)
        return std::unexpected(instantiated.error());
    return exec;
}

Result<void> CudaGraphExec::launch(Stream& stream) noexcept
try {
    if (stream.native() != nullptr && stream.is_capturing())
        return fail(ErrorCode::not_recordable, "launch of a graph in a stream that captures");
    return launch_uncaptured(stream);
} catch (...) {
    return out_of_memory();
}

Result<void> CudaGraphExec::launch_uncaptured(Stream& stream) noexcept
try {
    auto* const native = static_cast<CUstream>(stream.native());
    if (native == nullptr) return fail(ErrorCode::invalid_argument, "launch of a graph in a stream of another device");
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
    // Launches of an exec are ordered, also in other streams; cuda.h does not say so about uploads. So wait here.
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
    if (node >= m_built.kept.size())
        return fail(ErrorCode::invalid_argument, "update of node {}, the graph has {}", node, m_built.kept.size());
    if (m_built.kept[node].index() != work.index())
        return fail(ErrorCode::invalid_argument,
                    "update changes the kind of a node; instantiate another graph for that");
    const CurrentContext current(m_core);
    const ChangeCall call{m_core, m_exec.get(), m_built.nodes[node], m_built.buffers};
    auto changed = std::visit(
        [&]<class Work>(const Work& after) {
            return change(call, std::get<typename InstantiatedForm<Work>::Type>(m_built.kept[node]), after);
        },
        work);
    if (!changed) [[unlikely]]
        return within(fmt::format("update of node {}", node), changed.error());
    return changed;
} catch (...) {
    return out_of_memory();
}

} // namespace warmgraph::backends::cuda
