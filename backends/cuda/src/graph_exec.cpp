#include "graph_exec.hpp"

#include <algorithm>

#include "graph/copy_node.hpp"
#include "graph_reader.hpp"
#include "host_pages.hpp"
#include "warmgraph/backends/work_checks.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::backends::cuda {
namespace {

std::unexpected<Error> out_of_memory() noexcept
{
    return std::unexpected(Error{ErrorCode::out_of_memory, "no host memory"});
}

/// What the driver does not let an exec change (a copy between memory of other kinds: measured, cuMemMap's against
/// cuMemAlloc's), another exec can hold. A driver that is broken says so again there.
Result<void> changed_or_unsupported(Result<void> set)
{
    if (!set && set.error().code == ErrorCode::driver_failed)
        return fail(ErrorCode::unsupported, "{}; instantiate another graph", set.error().message);
    return set;
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
    for (const RawNode& node : graph.nodes) {
        const auto* const kernel = std::get_if<RawKernel>(&node.work);
        if (kernel == nullptr) {
            std::visit(
                [&]<class Work>(const Work& work) {
                    if constexpr (!std::is_same_v<Work, RawKernel>) m_nodes.emplace_back(work);
                },
                node.work);
            if (const auto* const batch = std::get_if<RawMemoryOperations>(&node.work))
                m_operations.reserve(batch->operations.size());
            if (const auto* const semaphores = std::get_if<RawSemaphores>(&node.work))
                m_semaphores.reserve(semaphores->uses.size());
            continue;
        }
        m_nodes.emplace_back(Kernel{m_built.kernels[m_nodes.size()], kernel->grid, kernel->block,
                                    shared_bytes_of(*kernel), kernel->packed ? kernel->params[0].value.size() : 0,
                                    kernel->attributes});
        m_params.reserve(kernel->params.size());
    }
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
    const CUgraphNode native = m_built.nodes[node];
    auto changed = [&]() -> Result<void> {
        if (const auto* kernel = std::get_if<RawKernel>(&work))
            return change(native, std::get<Kernel>(m_nodes[node]), *kernel);
        return std::visit(
            [&]<class Work>(const Work& after) -> Result<void> {
                if constexpr (std::is_same_v<Work, RawEmpty> || std::is_same_v<Work, RawKernel>)
                    return {};
                else
                    return change(native, std::get<Work>(m_nodes[node]), after);
            },
            work);
    }();
    if (!changed) [[unlikely]]
        return within(fmt::format("update of node {}", node), changed.error());
    return changed;
} catch (...) {
    return out_of_memory();
}

// As work_checks' check_update, against what is kept of the node.
Result<void> CudaGraphExec::check(const Kernel& before, const RawKernel& after)
{
    const auto differs = [&](std::string_view what, ErrorCode code = ErrorCode::invalid_argument) {
        return fail(code, "update of kernel '{}' changes its {}; instantiate another graph for that",
                    readable_kernel_name(before.function->name), what);
    };
    if (before.function->module != after.module || before.function->name != after.kernel) return differs("kernel");
    if (before.grid != after.grid || before.block != after.block || before.shared_bytes != shared_bytes_of(after))
        return differs("dimensions");
    if (after.packed != (before.packed_size != 0)) return differs("parameters' form");
    if (before.attributes != after.attributes) return differs("launch attributes", ErrorCode::unsupported);
    return check_params(after, *before.function->info, before.packed_size);
}

Result<void> CudaGraphExec::change(CUgraphNode node, Kernel& before, const RawKernel& after)
{
    if (auto checked = check(before, after); !checked) return checked;
    const CUDA_KERNEL_NODE_PARAMS& native = m_params.fill(before.function->info->function, after);
    return m_core.driver->call("cuGraphExecKernelNodeSetParams", m_core.driver->cuGraphExecKernelNodeSetParams,
                               m_exec.get(), node, &native);
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawCopy& before, const RawCopy& after)
{
    if (before == after) return {};
    // The driver refuses both (cuGraphExecMemcpyNodeSetParams); said here with the cure.
    if (before.rows > 1 || before.slices > 1 || after.rows > 1 || after.slices > 1)
        return fail(ErrorCode::unsupported,
                    "the driver cannot change a copy of several rows; instantiate another graph");
    if (before.source_space != after.source_space || before.destination_space != after.destination_space)
        return fail(ErrorCode::invalid_argument, "the copy changes between host and device; instantiate another graph");
    const CUDA_MEMCPY3D native = to_native(after);
    auto set = changed_or_unsupported(m_core.driver->call("cuGraphExecMemcpyNodeSetParams",
                                                          m_core.driver->cuGraphExecMemcpyNodeSetParams, m_exec.get(),
                                                          node, &native, m_core.context));
    if (set) before = after;
    return set;
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawFill& before, const RawFill& after)
{
    if (before == after) return {};
    if (auto checked = check_form(after); !checked) return checked;
    if (before.pattern.size() != after.pattern.size() || before.rows != after.rows)
        return fail(ErrorCode::invalid_argument,
                    "the fill changes its pattern's size or its rows; instantiate another graph");
    if (before.rows > 1 && (before.size != after.size || before.pitch != after.pitch))
        return fail(ErrorCode::unsupported, "the driver cannot change the box of a fill of several rows; instantiate "
                                            "another graph");
    const auto native = to_native(after);
    if (!native) return std::unexpected(native.error());
    auto set = changed_or_unsupported(m_core.driver->call("cuGraphExecMemsetNodeSetParams",
                                                          m_core.driver->cuGraphExecMemsetNodeSetParams, m_exec.get(),
                                                          node, &*native, m_core.context));
    if (set) before = after;
    return set;
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawEventRecord& before, const RawEventRecord& after)
{
    if (before == after) return {};
    auto set =
        m_core.driver->call("cuGraphExecEventRecordNodeSetEvent", m_core.driver->cuGraphExecEventRecordNodeSetEvent,
                            m_exec.get(), node, event_of(after.event));
    if (set) before = after;
    return set;
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawEventWait& before, const RawEventWait& after)
{
    if (before == after) return {};
    auto set = m_core.driver->call("cuGraphExecEventWaitNodeSetEvent", m_core.driver->cuGraphExecEventWaitNodeSetEvent,
                                   m_exec.get(), node, event_of(after.event));
    if (set) before = after;
    return set;
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawHost& before, const RawHost& after)
{
    if (before == after) return {};
    const CUDA_HOST_NODE_PARAMS native{after.function, after.data};
    auto set = m_core.driver->call("cuGraphExecHostNodeSetParams", m_core.driver->cuGraphExecHostNodeSetParams,
                                   m_exec.get(), node, &native);
    if (set) before = after;
    return set;
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawMemoryOperations& before, const RawMemoryOperations& after)
{
    if (before == after) return {};
    const Driver& driver = *m_core.driver;
    if (auto checked = check_update(before, after); !checked) return checked;
    if (auto checked = check_operations(after); !checked) return checked;
    if (driver.cuGraphExecBatchMemOpNodeSetParams == nullptr)
        return no_operations(driver, "cuGraphExecBatchMemOpNodeSetParams");
    auto set = changed_or_unsupported(driver.call("cuGraphExecBatchMemOpNodeSetParams",
                                                  driver.cuGraphExecBatchMemOpNodeSetParams, m_exec.get(), node,
                                                  &m_operations.fill(m_core, after)));
    if (set) before = after; // of the same size: allocates nothing
    return set;
}

Result<void> CudaGraphExec::change(CUgraphNode node, RawSemaphores& before, const RawSemaphores& after)
{
    if (before == after) return {};
    if (auto checked = check_update(before, after); !checked) return checked;
    if (auto checked = check_semaphores(after); !checked) return checked;
    auto set = changed_or_unsupported(after.action == SemaphoreAction::signal ? set_signal(node, after)
                                                                              : set_wait(node, after));
    if (set) before = after; // of the same size: allocates nothing
    return set;
}

Result<void> CudaGraphExec::set_signal(CUgraphNode node, const RawSemaphores& work)
{
    const Driver& driver = *m_core.driver;
    if (driver.cuGraphExecExternalSemaphoresSignalNodeSetParams == nullptr)
        return no_semaphores(driver, "cuGraphExecExternalSemaphoresSignalNodeSetParams");
    return driver.call("cuGraphExecExternalSemaphoresSignalNodeSetParams",
                       driver.cuGraphExecExternalSemaphoresSignalNodeSetParams, m_exec.get(), node,
                       &m_semaphores.signal(work));
}

Result<void> CudaGraphExec::set_wait(CUgraphNode node, const RawSemaphores& work)
{
    const Driver& driver = *m_core.driver;
    if (driver.cuGraphExecExternalSemaphoresWaitNodeSetParams == nullptr)
        return no_semaphores(driver, "cuGraphExecExternalSemaphoresWaitNodeSetParams");
    return driver.call("cuGraphExecExternalSemaphoresWaitNodeSetParams",
                       driver.cuGraphExecExternalSemaphoresWaitNodeSetParams, m_exec.get(), node,
                       &m_semaphores.wait(work));
}

} // namespace warmgraph::backends::cuda
