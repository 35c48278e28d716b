#include "nodes.hpp"
#include "patch_table.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

namespace {

void add_edge(backends::RawGraph& raw, const cachefmt::Edge& edge)
{
    auto& node = raw.nodes[edge.to];
    // A node has edge data, one for each dependency, only if an edge means more than order.
    if (edge.data != cachefmt::EdgeData{} && node.edges.empty()) node.edges.resize(node.dependencies.size());
    node.dependencies.push_back(edge.from);
    if (!node.edges.empty() || edge.data != cachefmt::EdgeData{}) node.edges.push_back(edge.data);
}

Result<void> check_sizes(const cachefmt::Graph& graph, std::size_t modules, const Bindings& bindings)
{
    if (modules != graph.images.size() || bindings.regions.size() != graph.regions.size() ||
        bindings.scalars.size() != graph.scalars.size() || bindings.events.size() != graph.events.size() ||
        bindings.semaphores.size() != graph.semaphores.size())
        return fail(ErrorCode::invalid_argument,
                    "bindings do not fit the graph: {} modules, {} regions, {} scalars, {} events, {} semaphores, "
                    "expected {}, {}, {}, {}, {}",
                    modules, bindings.regions.size(), bindings.scalars.size(), bindings.events.size(),
                    bindings.semaphores.size(), graph.images.size(), graph.regions.size(), graph.scalars.size(),
                    graph.events.size(), graph.semaphores.size());
    return {};
}

} // namespace

Result<backends::RawGraph> resolve(const cachefmt::Graph& graph, std::span<backends::Module* const> modules,
                                   const Bindings& bindings)
{
    return resolve(graph, make_patch_table(graph), modules, bindings);
}

Result<backends::RawGraph> resolve(const cachefmt::Graph& graph, const PatchTable& table,
                                   std::span<backends::Module* const> modules, const Bindings& bindings)
{
    if (auto checked = check_sizes(graph, modules.size(), bindings); !checked) return std::unexpected(checked.error());
    backends::RawGraph raw;
    raw.nodes.reserve(graph.nodes.size());
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        auto work = unbound_work(graph.nodes[i], modules, bindings);
        if (!work) return within(fmt::format("node {}", i), work.error());
        raw.nodes.push_back({std::move(*work), {}});
    }
    for (const auto& edge : graph.edges) add_edge(raw, edge);

    for (std::size_t region = 0; region < graph.regions.size(); ++region)
        for (const Site& site : table.by_region[region])
            patch_region(raw.nodes[site.node], site, bindings.regions[region].address);
    for (std::size_t scalar = 0; scalar < graph.scalars.size(); ++scalar)
        for (const Site& site : table.by_scalar[scalar])
            patch_scalar(raw.nodes[site.node], site, bindings.scalars[scalar]);
    return raw;
}

} // namespace warmgraph::replay
