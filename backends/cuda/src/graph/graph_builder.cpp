#include "graph/graph_builder.hpp"

#include <algorithm>
#include <compare>
#include <functional>

#include "graph/graph_exec.hpp"
#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::cuda {
/// An edge with the driver's handles.
struct CudaGraphBuilder::NativeEdge {
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

namespace {

/// Edges with the same edge data.
struct EdgeGroup {
    EdgeData data{};
    std::vector<CUgraphNode> from, to;
};

unsigned long long instantiate_flags_of(const RawNode& node) noexcept
{
    const auto* const kernel = std::get_if<RawKernel>(&node.work);
    const bool has_priority =
        kernel != nullptr && std::ranges::any_of(kernel->attributes, [](const RawAttribute& attribute) {
            return attribute.id == CU_LAUNCH_ATTRIBUTE_PRIORITY;
        });
    return has_priority ? static_cast<unsigned long long>(CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY) : 0ULL;
}

Result<void> check_edge_data(const RawNode& node, std::size_t index)
{
    if (!node.edges.empty() && node.edges.size() != node.dependencies.size())
        return fail(ErrorCode::invalid_argument, "node {} has data for {} edges, expected {}", index, node.edges.size(),
                    node.dependencies.size());
    return {};
}

/// Bytes of heap that the driver will allocate on this thread (host_pages.hpp); 0 if it is too little to matter.
std::size_t host_bytes_of(std::size_t nodes) noexcept
{
    constexpr std::size_t k_bytes_of_node = 8192, k_least_nodes = 64;
    return nodes >= k_least_nodes ? nodes * k_bytes_of_node : 0;
}

} // namespace

unsigned long long instantiate_flags_of(const RawGraph& graph) noexcept
{
    unsigned long long flags = 0;
    for (const RawNode& node : graph.nodes) flags |= instantiate_flags_of(node);
    return flags;
}

CudaGraphBuilder::CudaGraphBuilder(Core& core, std::size_t nodes)
    : m_heap(host_bytes_of(nodes)),
      m_building(core),
      m_current(core),
      m_outside(core),
      m_core(core),
      m_expected(nodes),
      m_built{.graph = NativeGraph(*core.driver)}
{
    m_built.nodes.reserve(nodes);
    m_built.kept.reserve(nodes);
}

CudaGraphBuilder::~CudaGraphBuilder() = default;

Result<std::unique_ptr<CudaGraphBuilder>> CudaGraphBuilder::begin(Core& core, std::size_t nodes)
{
    std::unique_ptr<CudaGraphBuilder> builder(new CudaGraphBuilder(core, nodes));
    const Driver& driver = *core.driver;
    if (auto made = driver.call("cuGraphCreate", driver.cuGraphCreate, builder->m_built.graph.out(), 0U); !made)
        return std::unexpected(made.error());
    return builder;
}

Result<void> CudaGraphBuilder::add(const RawNode& node)
{
    const std::size_t at = m_built.nodes.size();
    if (auto checked = check_order(node, at); !checked) return checked;
    if (auto checked = check_edge_data(node, at); !checked) return checked;
    // Plain edges are added with their node, which is faster than later (NOTES.md). Edges with data need another call.
    const bool are_plain = std::ranges::all_of(node.edges, [](const EdgeData& data) { return data == EdgeData{}; });
    m_dependencies.clear();
    if (are_plain)
        for (const std::uint32_t dependency : node.dependencies) m_dependencies.push_back(m_built.nodes[dependency]);
    AddCall call{m_core, m_built.graph.get(), m_functions, m_built.buffers, m_dependencies};
    auto added = std::visit(
        [&](const auto& work) {
            m_built.buffers.reserve(work);
            auto done = cuda::add(call, work);
            if (done) m_built.kept.emplace_back(kept(work, call.kernel));
            return done;
        },
        node.work);
    if (!added) return within(fmt::format("node {} of {}", at, std::max(m_expected, at + 1)), added.error());
    m_built.nodes.push_back(call.node);
    m_built.instantiate_flags |= instantiate_flags_of(node);
    for (std::size_t i = 0; i < node.dependencies.size(); ++i) {
        m_edges.push_back(
            {m_built.nodes[node.dependencies[i]], call.node, node.edges.empty() ? EdgeData{} : node.edges[i]});
        if (!are_plain) m_later.push_back(m_edges.back());
    }
    return {};
}

Result<BuiltGraph> CudaGraphBuilder::finish()
{
    if (auto connected = connect(); !connected) return std::unexpected(connected.error());
    if (auto checked = check_edges(); !checked) return std::unexpected(checked.error());
    m_built.functions = m_functions.take();
    return std::move(m_built);
}

Result<std::unique_ptr<GraphExec>> CudaGraphBuilder::instantiate()
{
    auto built = finish();
    if (!built) return std::unexpected(built.error());
    return CudaGraphExec::make(m_core, std::move(*built));
}

/// Adds the edges, with one call for each edge data: a call with mixed data gives all edges the first edge's data
/// (measured).
Result<void> CudaGraphBuilder::connect()
{
    const Driver& driver = *m_core.driver;
    std::vector<EdgeGroup> groups(1); // the first group is for plain edges
    for (const NativeEdge& edge : m_later) {
        auto group = std::ranges::find(groups, edge.data, &EdgeGroup::data);
        if (group == groups.end()) group = groups.insert(group, {edge.data, {}, {}});
        group->from.push_back(edge.from);
        group->to.push_back(edge.to);
    }
    for (const EdgeGroup& group : groups) {
        if (group.from.empty()) continue;
        CUgraphEdgeData one{};
        one.from_port = group.data.from_port;
        one.to_port = group.data.to_port;
        one.type = group.data.type;
        const std::vector<CUgraphEdgeData> data(group.from.size(), one);
        auto added = driver.call("cuGraphAddDependencies", driver.cuGraphAddDependencies, m_built.graph.get(),
                                 group.from.data(), group.to.data(), data.data(), group.from.size());
        if (!added)
            return within(
                fmt::format("{} edges with data {}.{}.{}", group.from.size(), one.from_port, one.to_port, one.type),
                added.error());
    }
    return {};
}

Result<void> CudaGraphBuilder::check_edges() const
{
    std::vector<NativeEdge> expected = m_edges;
    auto held = held_edges();
    if (!held) return std::unexpected(held.error());
    std::ranges::sort(expected, std::less<>());
    std::ranges::sort(*held, std::less<>());
    if (*held == expected) return {};
    const auto [wanted, found] = std::ranges::mismatch(expected, *held);
    return fail(ErrorCode::driver_failed, "the driver returned other edges: {}, expected {} ({} against {} in all)",
                found == held->end() ? "one is missing" : describe(*found),
                wanted == expected.end() ? "no more" : describe(*wanted), held->size(), expected.size());
}

Result<std::vector<CudaGraphBuilder::NativeEdge>> CudaGraphBuilder::held_edges() const
{
    const Driver& driver = *m_core.driver;
    std::size_t count = 0;
    const CUgraph graph = m_built.graph.get();
    auto got = driver.call("cuGraphGetEdges", driver.cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &count);
    if (!got) return std::unexpected(got.error());
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count != 0) {
        got =
            driver.call("cuGraphGetEdges", driver.cuGraphGetEdges, graph, from.data(), to.data(), data.data(), &count);
        if (!got) return std::unexpected(got.error());
    }
    std::vector<NativeEdge> edges(count);
    for (std::size_t i = 0; i < count; ++i)
        edges[i] = {from[i], to[i], {data[i].from_port, data[i].to_port, data[i].type}};
    return edges;
}

std::string CudaGraphBuilder::describe(const NativeEdge& edge) const
{
    const auto index = [&](CUgraphNode node) { return std::ranges::find(m_built.nodes, node) - m_built.nodes.begin(); };
    return fmt::format("node {} -> node {} with data {}.{}.{}", index(edge.from), index(edge.to), edge.data.from_port,
                       edge.data.to_port, edge.data.type);
}

} // namespace warmgraph::backends::cuda
