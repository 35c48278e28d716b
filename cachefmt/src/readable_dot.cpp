// The drawing of `warmgraph show --dot`: one box for each node.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "describe.hpp"
#include "nodes/node_format.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt {
namespace {

/// Escapes text for a double-quoted DOT string. printable() comes first and removes line ends.
std::string dot_text(std::string_view text)
{
    std::string out;
    for (const char c : printable(text)) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

std::string label(const Node& node, const Graph& graph)
{
    std::vector<std::string> lines = to_text(node, graph).lines;
    for (std::string& line : lines) line = dot_text(line);
    return fmt::format("{}", fmt::join(lines, "\\n"));
}

} // namespace

NodeText to_text(const Node& node, const Graph& graph) { return {node_kind(node), format_of(node).label(node, graph)}; }

std::string to_dot(const Entry& entry)
{
    const Graph& graph = entry.graph;
    std::string out = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"monospace\"];\n",
                                  dot_text(entry.header.key.function.function));
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        out += fmt::format("  n{} [label=\"{}: {}\"];\n", i, i, label(graph.nodes[i], graph));
    for (const Edge& edge : graph.edges)
        out += fmt::format("  n{} -> n{}{};\n", edge.from, edge.to,
                           edge.data == EdgeData{} ? "" : fmt::format(" [label=\"{}\"]", to_text(edge.data)));
    return out + "}\n";
}

} // namespace warmgraph::cachefmt
