#include "graph_builder.hpp"

#include <algorithm>
#include <compare>
#include <functional>

#include "graph/copy_node.hpp"
#include "graph/kernel_node.hpp"
#include "graph/memory_operations_node.hpp"
#include "graph/semaphores_node.hpp"
#include "warmgraph/backends/work_checks.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::backends::cuda {
namespace {

/// An edge as the driver holds it.
struct NativeEdge {
    CUgraphNode from = nullptr, to = nullptr;
    EdgeData data{};
    bool operator==(const NativeEdge&) const = default;
    friend bool operator<(const NativeEdge& a, const NativeEdge& b) noexcept
    {
        if (a.from != b.from) return std::less<>()(a.from, b.from);
        if (a.to != b.to) return std::less<>()(a.to, b.to);
        return a.data < b.data;
    }
};

/// Edges of one edge data.
struct EdgeGroup {
    EdgeData data{};
    std::vector<CUgraphNode> from, to;
};

class Builder {
public:
    Builder(Core& core, const RawGraph& graph)
        : m_core(core), m_driver(*core.driver), m_graph(graph), m_built{NativeGraph(m_driver), {}, {}, {}}
    {
    }

    Result<BuiltGraph> build()
    {
        if (auto made = m_driver.call("cuGraphCreate", m_driver.cuGraphCreate, m_built.graph.out(), 0U); !made)
            return std::unexpected(made.error());
        m_built.nodes.resize(m_graph.nodes.size());
        m_built.kernels.resize(m_graph.nodes.size());
        for (m_at = 0; m_at < m_graph.nodes.size(); ++m_at) {
            auto added = std::visit([&](const auto& work) { return add(work); }, m_graph.nodes[m_at].work);
            if (!added) return within(fmt::format("node {} of {}", m_at, m_graph.nodes.size()), added.error());
        }
        if (auto connected = connect(); !connected) return std::unexpected(connected.error());
        if (auto checked = check_edges(); !checked) return std::unexpected(checked.error());
        m_built.functions = m_functions.take();
        return std::move(m_built);
    }

private:
    /// Adds the node that m_at names, without dependencies.
    template <class... Params, class... Args>
    Result<void> call_add(const char* name,
                          CUresult (*function)(CUgraphNode*, CUgraph, const CUgraphNode*, std::size_t, Params...),
                          Args... args)
    {
        return m_driver.call(name, function, &m_built.nodes[m_at], m_built.graph.get(), nullptr, std::size_t{0},
                             args...);
    }

    Result<void> add(const RawEmpty&) { return call_add("cuGraphAddEmptyNode", m_driver.cuGraphAddEmptyNode); }

    Result<void> add(const RawKernel& kernel)
    {
        const auto function = m_functions.find(kernel);
        if (!function) return std::unexpected(function.error());
        if ((*function)->applied != kernel.function_attributes) {
            auto applied = apply_function_attributes(m_driver, (*function)->info->function, kernel.function_attributes);
            if (!applied)
                return within(fmt::format("kernel '{}'", readable_kernel_name(kernel.kernel)), applied.error());
            (*function)->applied = kernel.function_attributes;
        }
        m_built.kernels[m_at] = *function;
        const CUDA_KERNEL_NODE_PARAMS* const native = &m_params.fill((*function)->info->function, kernel);
        auto added = call_add("cuGraphAddKernelNode", m_driver.cuGraphAddKernelNode, native);
        if (added) added = set_attributes(m_driver, m_built.nodes[m_at], kernel.attributes);
        if (!added) return within(fmt::format("kernel '{}'", readable_kernel_name(kernel.kernel)), added.error());
        return {};
    }

    Result<void> add(const RawCopy& copy)
    {
        const CUDA_MEMCPY3D native = to_native(copy);
        return call_add("cuGraphAddMemcpyNode", m_driver.cuGraphAddMemcpyNode, &native, m_core.context);
    }

    Result<void> add(const RawFill& fill)
    {
        const auto native = to_native(fill);
        if (!native) return std::unexpected(native.error());
        return call_add("cuGraphAddMemsetNode", m_driver.cuGraphAddMemsetNode, &*native, m_core.context);
    }

    Result<void> add(const RawEventRecord& work)
    {
        return call_add("cuGraphAddEventRecordNode", m_driver.cuGraphAddEventRecordNode, event_of(work.event));
    }

    Result<void> add(const RawEventWait& work)
    {
        return call_add("cuGraphAddEventWaitNode", m_driver.cuGraphAddEventWaitNode, event_of(work.event));
    }

    Result<void> add(const RawHost& work)
    {
        const CUDA_HOST_NODE_PARAMS native{work.function, work.data};
        return call_add("cuGraphAddHostNode", m_driver.cuGraphAddHostNode, &native);
    }

    Result<void> add(const RawMemoryOperations& work)
    {
        if (m_driver.cuGraphAddBatchMemOpNode == nullptr) return no_operations(m_driver, "cuGraphAddBatchMemOpNode");
        if (auto checked = check_operations(work); !checked) return checked;
        NativeOperations native;
        return call_add("cuGraphAddBatchMemOpNode", m_driver.cuGraphAddBatchMemOpNode, &native.fill(m_core, work));
    }

    Result<void> add(const RawSemaphores& work)
    {
        if (auto checked = check_semaphores(work); !checked) return checked;
        return work.action == SemaphoreAction::signal ? add_signal(work) : add_wait(work);
    }

    Result<void> add_signal(const RawSemaphores& work)
    {
        if (m_driver.cuGraphAddExternalSemaphoresSignalNode == nullptr)
            return no_semaphores(m_driver, "cuGraphAddExternalSemaphoresSignalNode");
        NativeSemaphores native;
        return call_add("cuGraphAddExternalSemaphoresSignalNode", m_driver.cuGraphAddExternalSemaphoresSignalNode,
                        &native.signal(work));
    }

    Result<void> add_wait(const RawSemaphores& work)
    {
        if (m_driver.cuGraphAddExternalSemaphoresWaitNode == nullptr)
            return no_semaphores(m_driver, "cuGraphAddExternalSemaphoresWaitNode");
        NativeSemaphores native;
        return call_add("cuGraphAddExternalSemaphoresWaitNode", m_driver.cuGraphAddExternalSemaphoresWaitNode,
                        &native.wait(work));
    }

    [[nodiscard]] EdgeData data_of(const RawNode& node, std::size_t dependency) const noexcept
    {
        return node.edges.empty() ? EdgeData{} : node.edges[dependency];
    }

    /// One call with mixed edge data gives all edges the first one's (measured): a call for each.
    Result<void> connect()
    {
        std::vector<EdgeGroup> groups(1); // the plain edges first
        for (std::size_t to = 0; to < m_graph.nodes.size(); ++to) {
            const RawNode& node = m_graph.nodes[to];
            for (std::size_t i = 0; i < node.dependencies.size(); ++i) {
                const EdgeData data = data_of(node, i);
                auto group = std::ranges::find(groups, data, &EdgeGroup::data);
                if (group == groups.end()) group = groups.insert(group, {data, {}, {}});
                group->from.push_back(m_built.nodes[node.dependencies[i]]);
                group->to.push_back(m_built.nodes[to]);
            }
        }
        for (const EdgeGroup& group : groups) {
            if (group.from.empty()) continue;
            CUgraphEdgeData one{};
            one.from_port = group.data.from_port;
            one.to_port = group.data.to_port;
            one.type = group.data.type;
            const std::vector<CUgraphEdgeData> data(group.from.size(), one);
            auto added = m_driver.call("cuGraphAddDependencies", m_driver.cuGraphAddDependencies, m_built.graph.get(),
                                       group.from.data(), group.to.data(), data.data(), group.from.size());
            if (!added)
                return within(
                    fmt::format("{} edges with data {}.{}.{}", group.from.size(), one.from_port, one.to_port, one.type),
                    added.error());
        }
        return {};
    }

    Result<void> check_edges() const
    {
        std::vector<NativeEdge> expected;
        for (std::size_t to = 0; to < m_graph.nodes.size(); ++to) {
            const RawNode& node = m_graph.nodes[to];
            for (std::size_t i = 0; i < node.dependencies.size(); ++i)
                expected.push_back({m_built.nodes[node.dependencies[i]], m_built.nodes[to], data_of(node, i)});
        }
        auto held = held_edges();
        if (!held) return std::unexpected(held.error());
        std::ranges::sort(expected, std::less<>());
        std::ranges::sort(*held, std::less<>());
        if (*held == expected) return {};
        const auto [wanted, found] = std::ranges::mismatch(expected, *held);
        return fail(ErrorCode::driver_failed, "edges read back: {}, expected {} ({} against {} in all)",
                    found == held->end() ? "one is missing" : describe(*found),
                    wanted == expected.end() ? "no more" : describe(*wanted), held->size(), expected.size());
    }

    Result<std::vector<NativeEdge>> held_edges() const
    {
        std::size_t count = 0;
        const CUgraph graph = m_built.graph.get();
        auto got = m_driver.call("cuGraphGetEdges", m_driver.cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &count);
        if (!got) return std::unexpected(got.error());
        std::vector<CUgraphNode> from(count), to(count);
        std::vector<CUgraphEdgeData> data(count);
        if (count != 0) {
            got = m_driver.call("cuGraphGetEdges", m_driver.cuGraphGetEdges, graph, from.data(), to.data(), data.data(),
                                &count);
            if (!got) return std::unexpected(got.error());
        }
        std::vector<NativeEdge> edges(count);
        for (std::size_t i = 0; i < count; ++i)
            edges[i] = {from[i], to[i], {data[i].from_port, data[i].to_port, data[i].type}};
        return edges;
    }

    [[nodiscard]] std::string describe(const NativeEdge& edge) const
    {
        const auto index = [&](CUgraphNode node) {
            return std::ranges::find(m_built.nodes, node) - m_built.nodes.begin();
        };
        return fmt::format("node {} -> node {} with data {}.{}.{}", index(edge.from), index(edge.to),
                           edge.data.from_port, edge.data.to_port, edge.data.type);
    }

    Core& m_core;
    const Driver& m_driver;
    const RawGraph& m_graph;
    KernelFunctions m_functions;
    KernelParams m_params;
    BuiltGraph m_built;
    std::size_t m_at = 0;
};

Result<void> check_edge_data(const RawGraph& graph)
{
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const RawNode& node = graph.nodes[i];
        if (!node.edges.empty() && node.edges.size() != node.dependencies.size())
            return fail(ErrorCode::invalid_argument, "node {} has data for {} edges, expected {}", i, node.edges.size(),
                        node.dependencies.size());
    }
    return {};
}

} // namespace

Result<BuiltGraph> build_graph(Core& core, const RawGraph& graph)
{
    if (auto checked = check_order(graph); !checked) return std::unexpected(checked.error());
    if (auto checked = check_edge_data(graph); !checked) return std::unexpected(checked.error());
    const CurrentContext current(core);
    const OutsideCapture outside(core);
    return Builder(core, graph).build();
}

} // namespace warmgraph::backends::cuda
