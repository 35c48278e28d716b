#include "graph/graph_flatten.hpp"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <unordered_map>

namespace warmgraph::backends::cuda {
namespace {

struct Edge {
    std::uint32_t from = 0, to = 0;
    EdgeData data{};
};

struct Incoming {
    std::uint32_t node = 0;
    EdgeData data{};
};

/// One graph without its children. Edges are sorted by their end; starts[i] is the first edge that ends in node i.
struct Level {
    std::vector<CUgraphNode> handles;
    std::vector<CUgraphNodeType> types;
    std::vector<Edge> edges;
    std::vector<std::size_t> starts;
    std::vector<std::uint32_t> successors; ///< number of successors
    std::vector<std::uint32_t> order;
    std::size_t roots = 0;
};

Result<std::vector<Edge>> read_edges(const Driver& driver, CUgraph graph, const std::vector<CUgraphNode>& handles)
{
    std::size_t count = 0;
    if (auto got = driver.call("cuGraphGetEdges", driver.cuGraphGetEdges, graph, nullptr, nullptr, nullptr, &count);
        !got)
        return std::unexpected(got.error());
    std::vector<CUgraphNode> from(count), to(count);
    std::vector<CUgraphEdgeData> data(count);
    if (count != 0) {
        auto got =
            driver.call("cuGraphGetEdges", driver.cuGraphGetEdges, graph, from.data(), to.data(), data.data(), &count);
        if (!got) return std::unexpected(got.error());
    }
    std::unordered_map<CUgraphNode, std::uint32_t> index(handles.size());
    for (std::uint32_t i = 0; i < handles.size(); ++i) index.emplace(handles[i], i);
    std::vector<Edge> edges;
    edges.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
        const auto start = index.find(from[i]), end = index.find(to[i]);
        if (start == index.end() || end == index.end())
            return fail(ErrorCode::driver_failed, "cuGraphGetEdges names a node that cuGraphGetNodes does not");
        edges.push_back({start->second, end->second, {data[i].from_port, data[i].to_port, data[i].type}});
    }
    return edges;
}

/// Orders the nodes by Kahn's algorithm. Among the free nodes it takes the first node in the driver's order.
std::vector<std::uint32_t> topological_order(std::vector<Edge> edges, std::size_t nodes)
{
    std::ranges::sort(edges, {}, &Edge::from);
    std::vector<std::size_t> starts(nodes + 1, 0);
    std::vector<std::uint32_t> waits(nodes, 0), order;
    for (const Edge& edge : edges) {
        ++starts[edge.from + 1];
        ++waits[edge.to];
    }
    for (std::size_t i = 0; i < nodes; ++i) starts[i + 1] += starts[i];
    std::priority_queue<std::uint32_t, std::vector<std::uint32_t>, std::greater<>> free;
    for (std::uint32_t i = 0; i < nodes; ++i)
        if (waits[i] == 0) free.push(i);
    order.reserve(nodes);
    while (!free.empty()) {
        const std::uint32_t node = free.top();
        free.pop();
        order.push_back(node);
        for (std::size_t i = starts[node]; i < starts[node + 1]; ++i)
            if (--waits[edges[i].to] == 0) free.push(edges[i].to);
    }
    return order;
}

Result<Level> read_level(const Driver& driver, CUgraph graph)
{
    Level level;
    std::size_t count = 0;
    if (auto got = driver.call("cuGraphGetNodes", driver.cuGraphGetNodes, graph, nullptr, &count); !got)
        return std::unexpected(got.error());
    level.handles.resize(count);
    if (count != 0) {
        auto got = driver.call("cuGraphGetNodes", driver.cuGraphGetNodes, graph, level.handles.data(), &count);
        if (!got) return std::unexpected(got.error());
    }
    level.types.resize(count);
    for (std::size_t i = 0; i < count; ++i) {
        auto got = driver.call("cuGraphNodeGetType", driver.cuGraphNodeGetType, level.handles[i], &level.types[i]);
        if (!got) return std::unexpected(got.error());
    }
    auto edges = read_edges(driver, graph, level.handles);
    if (!edges) return std::unexpected(edges.error());
    level.edges = std::move(*edges);
    level.order = topological_order(level.edges, count);
    if (level.order.size() != count)
        return fail(ErrorCode::not_recordable, "the graph's edges form a cycle through {} of {} nodes",
                    count - level.order.size(), count);
    std::ranges::sort(level.edges, {}, &Edge::to);
    level.starts.assign(count + 1, 0);
    level.successors.assign(count, 0);
    for (const Edge& edge : level.edges) {
        ++level.starts[edge.to + 1];
        ++level.successors[edge.from];
    }
    for (std::size_t i = 0; i < count; ++i) {
        if (level.starts[i + 1] == 0) ++level.roots;
        level.starts[i + 1] += level.starts[i];
    }
    return level;
}

class Flattener {
public:
    explicit Flattener(const Driver& driver) noexcept : m_driver(driver) {}

    /// Appends a level after `before`. Returns the nodes that end it.
    Result<std::vector<std::uint32_t>> add(const Level& level, const std::vector<Incoming>& before)
    {
        std::vector<std::uint32_t> place(level.handles.size()), ends;
        std::map<std::uint32_t, std::vector<std::uint32_t>> child_ends;
        std::vector<Incoming> incoming;
        for (const std::uint32_t node : level.order) {
            incoming.clear();
            for (std::size_t i = level.starts[node]; i < level.starts[node + 1]; ++i) {
                const Edge& edge = level.edges[i];
                const auto child = child_ends.find(edge.from);
                if (child == child_ends.end()) {
                    incoming.push_back({place[edge.from], edge.data});
                } else { // child graphs have no ports, so a plain edge is right
                    for (const std::uint32_t end : child->second) incoming.push_back({end, {}});
                }
            }
            if (level.starts[node] == level.starts[node + 1]) incoming = before;
            if (level.types[node] == CU_GRAPH_NODE_TYPE_GRAPH) {
                auto child = expand(level.handles[node], incoming, level.successors[node]);
                if (!child) return child;
                if (level.successors[node] == 0) ends.insert(ends.end(), child->begin(), child->end());
                child_ends.emplace(node, std::move(*child));
                continue;
            }
            auto pushed = push(level.handles[node], level.types[node], incoming);
            if (!pushed) return std::unexpected(pushed.error());
            place[node] = *pushed;
            if (level.successors[node] == 0) ends.push_back(*pushed);
        }
        return ends;
    }

    std::vector<FlatNode> take() noexcept { return std::move(m_nodes); }

private:
    /// Inserts a child graph. Empty nodes join its edges, so that m edges in and n out do not become m x n.
    Result<std::vector<std::uint32_t>> expand(CUgraphNode node, std::vector<Incoming> incoming, std::size_t successors)
    {
        CUgraph graph = nullptr;
        auto got = m_driver.call("cuGraphChildGraphNodeGetGraph", m_driver.cuGraphChildGraphNodeGetGraph, node, &graph);
        if (!got) return std::unexpected(got.error());
        const auto level = read_level(m_driver, graph);
        if (!level) return std::unexpected(level.error());
        for (Incoming& edge : incoming) edge.data = {}; // a plain edge is strict enough
        if (level->handles.empty() || (incoming.size() > 1 && level->roots > 1)) {
            auto start = push(nullptr, CU_GRAPH_NODE_TYPE_EMPTY, incoming);
            if (!start) return std::unexpected(start.error());
            if (level->handles.empty()) return std::vector{*start};
            incoming = {{*start, {}}};
        }
        auto ends = add(*level, incoming);
        if (!ends || ends->size() == 1 || successors <= 1) return ends;
        incoming.clear();
        for (const std::uint32_t end : *ends) incoming.push_back({end, {}});
        auto end = push(nullptr, CU_GRAPH_NODE_TYPE_EMPTY, incoming);
        if (!end) return std::unexpected(end.error());
        return std::vector{*end};
    }

    Result<std::uint32_t> push(CUgraphNode handle, CUgraphNodeType type, std::vector<Incoming> incoming)
    {
        const auto index = static_cast<std::uint32_t>(m_nodes.size());
        std::ranges::sort(incoming, {}, &Incoming::node);
        const auto twice = std::ranges::adjacent_find(incoming, {}, &Incoming::node);
        if (twice != incoming.end())
            return fail(ErrorCode::not_recordable, "node {} has two edges to node {} with different data, expected one",
                        twice->node, index);
        FlatNode node{handle, type, {}, {}};
        node.dependencies.reserve(incoming.size());
        bool plain = true;
        for (const Incoming& edge : incoming) {
            node.dependencies.push_back(edge.node);
            plain = plain && edge.data == EdgeData{};
        }
        if (!plain)
            for (const Incoming& edge : incoming) node.edges.push_back(edge.data);
        m_nodes.push_back(std::move(node));
        return index;
    }

    const Driver& m_driver;
    std::vector<FlatNode> m_nodes;
};

} // namespace

Result<std::vector<FlatNode>> flatten(const Driver& driver, CUgraph graph)
{
    const auto level = read_level(driver, graph);
    if (!level) return std::unexpected(level.error());
    Flattener flattener(driver);
    if (auto added = flattener.add(*level, {}); !added) return std::unexpected(added.error());
    return flattener.take();
}

const char* kind_name(CUgraphNodeType type) noexcept
{
    switch (type) {
    case CU_GRAPH_NODE_TYPE_KERNEL: return "kernel";
    case CU_GRAPH_NODE_TYPE_MEMCPY: return "memcpy";
    case CU_GRAPH_NODE_TYPE_MEMSET: return "memset";
    case CU_GRAPH_NODE_TYPE_HOST: return "host function";
    case CU_GRAPH_NODE_TYPE_GRAPH: return "child graph";
    case CU_GRAPH_NODE_TYPE_EMPTY: return "empty";
    case CU_GRAPH_NODE_TYPE_WAIT_EVENT: return "event wait";
    case CU_GRAPH_NODE_TYPE_EVENT_RECORD: return "event record";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL: return "external semaphore signal";
    case CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT: return "external semaphore wait";
    case CU_GRAPH_NODE_TYPE_MEM_ALLOC: return "memory allocation";
    case CU_GRAPH_NODE_TYPE_MEM_FREE: return "memory free";
    case CU_GRAPH_NODE_TYPE_BATCH_MEM_OP: return "batch memory operation";
    case CU_GRAPH_NODE_TYPE_CONDITIONAL: return "conditional";
    default: return "unknown";
    }
}

} // namespace warmgraph::backends::cuda
