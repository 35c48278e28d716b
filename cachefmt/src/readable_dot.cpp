// The drawing of `warmgraph show --dot`: one box a node.
#include <fmt/format.h>

#include "cuda_names.hpp"
#include "describe.hpp"
#include "warmgraph/base/kernel_name.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt {
namespace {

/// Inside a double-quoted DOT string. printable() comes first, so that no line end is left.
std::string quoted(std::string_view text)
{
    std::string out;
    for (const char c : printable(text)) {
        if (c == '"' || c == '\\') out += '\\';
        out += c;
    }
    return out;
}

struct Label {
    const Graph& graph;

    std::string operator()(const EmptyNode&) const { return "empty"; }
    std::string operator()(const EventRecordNode& record) const
    {
        return "event record\\n" + quoted(event_text(record.event, graph));
    }
    std::string operator()(const EventWaitNode& wait) const
    {
        return "event wait\\n" + quoted(event_text(wait.event, graph));
    }
    std::string operator()(const HostNode& host) const { return "host\\n" + quoted(host.function); }
    std::string operator()(const MemoryOperationsNode& node) const
    {
        std::string out = "memory operations";
        for (const MemoryOperation& operation : node.operations) out += "\\n" + quoted(to_text(operation, graph));
        return out;
    }
    std::string operator()(const SemaphoresNode& node) const
    {
        std::string out{node_kind(node)};
        for (const SemaphoreUse& use : node.uses) out += "\\n" + quoted(to_text(use, node.action, graph));
        return out;
    }
    std::string operator()(const KernelNode& kernel) const
    {
        std::string out = fmt::format("{}\\ngrid {} block {}", quoted(readable_kernel_name(kernel.kernel)),
                                      to_text(kernel.grid), to_text(kernel.block));
        for (const Param& param : kernel.params)
            for (const Slot& slot : param.slots) out += "\\n" + quoted(to_text(slot, graph));
        if (kernel.shared_bytes != 0) out += fmt::format("\\nshared {}", human_size(kernel.shared_bytes));
        for (const Attribute& attribute : kernel.attributes)
            out += fmt::format("\\n{} = {}", launch_attribute_name(attribute.id), quoted(to_text(attribute, graph)));
        return out;
    }
    std::string operator()(const CopyNode& copy) const
    {
        return fmt::format("copy {}\\n{}\\n-> {}", box_size(copy.size, copy.rows, copy.slices),
                           quoted(to_text(copy.source, graph)), quoted(to_text(copy.destination, graph)));
    }
    std::string operator()(const FillNode& fill) const
    {
        return fmt::format("fill {}\\n{}", box_size(fill.size, fill.rows, 1), quoted(to_text(fill.destination, graph)));
    }
};

} // namespace

std::string to_dot(const Entry& entry)
{
    const Graph& graph = entry.graph;
    std::string out = fmt::format("digraph \"{}\" {{\n  node [shape=box, fontname=\"monospace\"];\n",
                                  quoted(entry.header.key.function.function));
    for (std::size_t i = 0; i < graph.nodes.size(); ++i)
        out += fmt::format("  n{} [label=\"{}: {}\"];\n", i, i, std::visit(Label{graph}, graph.nodes[i]));
    for (const Edge& edge : graph.edges)
        out += fmt::format("  n{} -> n{}{};\n", edge.from, edge.to,
                           edge.data == EdgeData{} ? "" : fmt::format(" [label=\"{}\"]", to_text(edge.data)));
    return out + "}\n";
}

} // namespace warmgraph::cachefmt
