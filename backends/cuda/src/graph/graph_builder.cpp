#include "graph/graph_builder.hpp"

#include <algorithm>
#include <compare>
#include <functional>

#include "graph/nodes/nodes.hpp"
#include "warmgraph/backends/work_checks.hpp"

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
        for (std::size_t at = 0; at < m_graph.nodes.size(); ++at) {
            AddCall call{m_core, m_built.graph.get(), m_functions, m_buffers};
            auto added = std::visit([&](const auto& work) { return add(call, work); }, m_graph.nodes[at].work);
            if (!added) return within(fmt::format("node {} of {}", at, m_graph.nodes.size()), added.error());
            m_built.nodes[at] = call.node;
            m_built.kernels[at] = call.kernel;
        }
        if (auto connected = connect(); !connected) return std::unexpected(connected.error());
        if (auto checked = check_edges(); !checked) return std::unexpected(checked.error());
        m_built.functions = m_functions.take();
        return std::move(m_built);
    }

private:
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
    NodeBuffers m_buffers;
    BuiltGraph m_built;
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
