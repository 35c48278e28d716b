#include <array>

#include <fmt/ranges.h>

#include "cuda_names.hpp"
#include "describe.hpp"
#include "readable_table.hpp"
#include "warmgraph/base/kernel_name.hpp"

namespace warmgraph::cachefmt {
namespace {

std::string bindings_section(const Graph& graph)
{
    std::string out = fmt::format("\nbindings: {}, {}{}{}\n", counted(graph.regions.size(), "region"),
                                  counted(graph.scalars.size(), "scalar"),
                                  graph.events.empty() ? "" : ", " + counted(graph.events.size(), "event"),
                                  graph.semaphores.empty() ? "" : ", " + counted(graph.semaphores.size(), "semaphore"));
    if (!graph.regions.empty()) {
        Table table{{"#", "region", "kind", "size", "align"}};
        for (std::size_t i = 0; i < graph.regions.size(); ++i) {
            const Region& region = graph.regions[i];
            table.add({fmt::format("{}", i), printable(region.name),
                       fmt::format("{}{}", to_string(region.kind), region.space == MemorySpace::host ? " (host)" : ""),
                       human_size(region.size), fmt::format("{}", region.alignment)});
        }
        out += table.text();
    }
    if (!graph.scalars.empty()) {
        Table table{{"#", "scalar", "type"}};
        for (std::size_t i = 0; i < graph.scalars.size(); ++i)
            table.add({fmt::format("{}", i), printable(graph.scalars[i].name),
                       std::string{warmgraph::to_string(graph.scalars[i].type)}});
        out += table.text();
    }
    if (!graph.events.empty()) {
        Table table{{"#", "event"}};
        for (std::size_t i = 0; i < graph.events.size(); ++i)
            table.add({fmt::format("{}", i), printable(graph.events[i])});
        out += table.text();
    }
    if (!graph.semaphores.empty()) {
        Table table{{"#", "semaphore"}};
        for (std::size_t i = 0; i < graph.semaphores.size(); ++i)
            table.add({fmt::format("{}", i), printable(graph.semaphores[i])});
        out += table.text();
    }
    return out;
}

std::string images_section(const Graph& graph)
{
    std::string out = fmt::format("\nimages: {}\n", graph.images.size());
    if (graph.images.empty()) return out;
    Table table{{"#", "image", "size", "digest", "source"}};
    Table variables{{"image", "variable", "size"}};
    std::size_t variable_count = 0;
    for (std::size_t i = 0; i < graph.images.size(); ++i) {
        const ImageRef& image = graph.images[i];
        table.add({fmt::format("{}", i), image.label.empty() ? "-" : printable(image.label), human_size(image.size),
                   short_hex(image.digest), image.origin == Digest{} ? "unknown" : short_hex(image.origin)});
        for (const ModuleVariable& variable : image.variables)
            variables.add({fmt::format("{}", i), printable(variable.name), human_size(variable.contents.size())});
        variable_count += image.variables.size();
    }
    out += table.text();
    return variable_count == 0 ? out : out + variables.text();
}

std::string params_text(const KernelNode& kernel, const Graph& graph)
{
    std::vector<std::string> items;
    for (const Param& param : kernel.params) items.push_back((kernel.packed ? "packed " : "") + to_text(param, graph));
    if (kernel.shared_bytes != 0) items.push_back(fmt::format("shared {} B", kernel.shared_bytes));
    for (const Attribute& attribute : kernel.attributes)
        items.push_back(fmt::format("{} = {}", launch_attribute_name(attribute.id), to_text(attribute, graph)));
    for (const FunctionAttribute& attribute : kernel.function_attributes)
        items.push_back(fmt::format("function's {} = {}", function_attribute_name(attribute.id), attribute.value));
    return fmt::format("{}", fmt::join(items, ", "));
}

std::string end_text(const Slot& end, const Pitch& pitch, MemorySpace space, const Graph& graph)
{
    return fmt::format("{}{}{}", to_text(end, graph), space == MemorySpace::host ? " (host)" : "",
                       pitch == Pitch{} ? "" : " pitch " + to_text(pitch));
}

struct NodeRow {
    const Graph& graph;

    using Cells = std::array<std::string, 4>; // what, grid, block, parameters
    Cells operator()(const EmptyNode&) const { return {"(empty)", "-", "-", ""}; }
    Cells operator()(const KernelNode& kernel) const
    {
        return {readable_kernel_name(kernel.kernel), to_text(kernel.grid), to_text(kernel.block),
                params_text(kernel, graph)};
    }
    Cells operator()(const CopyNode& copy) const
    {
        return {"(copy)", "-", "-",
                fmt::format("{} from {} to {}", box_size(copy.size, copy.rows, copy.slices),
                            end_text(copy.source, copy.source_pitch, copy.source_space, graph),
                            end_text(copy.destination, copy.destination_pitch, copy.destination_space, graph))};
    }
    Cells operator()(const FillNode& fill) const
    {
        return {"(fill)", "-", "-",
                fmt::format("{} of {} with {}", box_size(fill.size, fill.rows, 1),
                            end_text(fill.destination, {fill.pitch, 0}, MemorySpace::device, graph),
                            hex(fill.pattern))};
    }
    Cells operator()(const EventRecordNode& record) const
    {
        return {"(event record)", "-", "-", event_text(record.event, graph)};
    }
    Cells operator()(const EventWaitNode& wait) const
    {
        return {"(event wait)", "-", "-", event_text(wait.event, graph)};
    }
    Cells operator()(const HostNode& host) const { return {"(host)", "-", "-", printable(host.function)}; }
    Cells operator()(const MemoryOperationsNode& node) const
    {
        std::vector<std::string> items;
        for (const MemoryOperation& operation : node.operations) items.push_back(to_text(operation, graph));
        return {"(memory operations)", "-", "-", fmt::format("{}", fmt::join(items, ", "))};
    }
    Cells operator()(const SemaphoresNode& node) const
    {
        std::vector<std::string> items;
        for (const SemaphoreUse& use : node.uses) items.push_back(to_text(use, node.action, graph));
        return {fmt::format("({})", node_kind(node)), "-", "-", fmt::format("{}", fmt::join(items, ", "))};
    }
};

std::string nodes_section(const Graph& graph)
{
    std::string out = fmt::format("\nnodes: {}, {}\n", graph.nodes.size(), counted(graph.edges.size(), "edge"));
    if (graph.nodes.empty()) return out;
    std::vector<std::vector<std::string>> after(graph.nodes.size());
    for (const Edge& edge : graph.edges) {
        const std::string more = edge.data == EdgeData{} ? "" : fmt::format(" ({})", to_text(edge.data));
        if (edge.to < after.size()) after[edge.to].push_back(fmt::format("{}{}", edge.from, more));
    }
    Table table{{"#", "node", "grid", "block", "after", "parameters"}};
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        auto [what, grid, block, params] = std::visit(NodeRow{graph}, graph.nodes[i]);
        table.add({fmt::format("{}", i), what, grid, block,
                   after[i].empty() ? "-" : fmt::format("{}", fmt::join(after[i], ",")), params});
    }
    return out + table.text();
}

} // namespace

std::string graph_sections(const Graph& graph)
{
    return bindings_section(graph) + images_section(graph) + nodes_section(graph);
}

} // namespace warmgraph::cachefmt
