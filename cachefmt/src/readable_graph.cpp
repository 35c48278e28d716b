#include <fmt/ranges.h>

#include "describe.hpp"
#include "nodes/node_format.hpp"
#include "readable_table.hpp"

namespace warmgraph::cachefmt {

std::string bindings_section(const Graph& graph, const Paint& paint)
{
    std::string counts =
        fmt::format("{}, {}", plural(graph.regions.size(), "region"), plural(graph.scalars.size(), "scalar"));
    if (!graph.events.empty()) counts += ", " + plural(graph.events.size(), "event");
    if (!graph.semaphores.empty()) counts += ", " + plural(graph.semaphores.size(), "semaphore");
    std::string out = fmt::format("{} {}\n", paint.bold("bindings:"), counts);
    if (!graph.regions.empty()) {
        Table table{{"#", "region", "kind", "size", "align"}};
        for (std::size_t i = 0; i < graph.regions.size(); ++i) {
            const Region& region = graph.regions[i];
            table.add({fmt::format("{}", i), printable(region.name),
                       fmt::format("{}{}", to_string(region.kind), region.space == MemorySpace::host ? " (host)" : ""),
                       size_text(region.size), fmt::format("{}", region.alignment)});
        }
        out += table.text(paint);
    }
    if (!graph.scalars.empty()) {
        Table table{{"#", "scalar", "type"}};
        for (std::size_t i = 0; i < graph.scalars.size(); ++i)
            table.add({fmt::format("{}", i), printable(graph.scalars[i].name),
                       std::string{warmgraph::to_string(graph.scalars[i].type)}});
        out += table.text(paint);
    }
    if (!graph.events.empty()) {
        Table table{{"#", "event"}};
        for (std::size_t i = 0; i < graph.events.size(); ++i)
            table.add({fmt::format("{}", i), printable(graph.events[i])});
        out += table.text(paint);
    }
    if (!graph.semaphores.empty()) {
        Table table{{"#", "semaphore"}};
        for (std::size_t i = 0; i < graph.semaphores.size(); ++i)
            table.add({fmt::format("{}", i), printable(graph.semaphores[i])});
        out += table.text(paint);
    }
    return out;
}

std::string images_section(const Graph& graph, const Paint& paint)
{
    std::string out = fmt::format("{} {}\n", paint.bold("images:"), graph.images.size());
    if (graph.images.empty()) return out;
    Table table{{"#", "image", "size", "digest", "source"}};
    Table variables{{"image", "variable", "size"}};
    std::size_t variable_count = 0;
    for (std::size_t i = 0; i < graph.images.size(); ++i) {
        const ImageRef& image = graph.images[i];
        table.add({fmt::format("{}", i), image.label.empty() ? "-" : printable(image.label), size_text(image.size),
                   short_hex(image.digest), image.origin == Digest{} ? "unknown" : short_hex(image.origin)});
        for (const ModuleVariable& variable : image.variables)
            variables.add({fmt::format("{}", i), printable(variable.name), size_text(variable.contents.size())});
        variable_count += image.variables.size();
    }
    out += table.text(paint);
    return variable_count == 0 ? out : out + variables.text(paint);
}

std::string nodes_section(const Graph& graph, const Paint& paint)
{
    std::string out =
        fmt::format("{} {}, {}\n", paint.bold("nodes:"), graph.nodes.size(), plural(graph.edges.size(), "edge"));
    if (graph.nodes.empty()) return out;
    std::vector<std::vector<std::string>> after(graph.nodes.size());
    for (const Edge& edge : graph.edges) {
        const std::string more = edge.data == EdgeData{} ? "" : fmt::format(" ({})", to_text(edge.data));
        if (edge.to < after.size()) after[edge.to].push_back(fmt::format("{}{}", edge.from, more));
    }
    Table table{{"#", "node", "grid", "block", "after", "parameters"}};
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        const Node& node = graph.nodes[i];
        const NodeRow row = format_of(node).row(node, graph);
        table.add({fmt::format("{}", i), row.what.value_or(fmt::format("({})", node_kind(node))), row.grid, row.block,
                   after[i].empty() ? "-" : fmt::format("{}", fmt::join(after[i], ",")), row.parameters});
    }
    return out + table.text(paint);
}

} // namespace warmgraph::cachefmt
