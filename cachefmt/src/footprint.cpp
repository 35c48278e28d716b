#include "footprint.hpp"

#include "heap_size.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

std::uint64_t image_footprint(const ImageRef& image) noexcept
{
    std::uint64_t bytes = text_size(image.label.size()) + items_size<ModuleVariable>(image.variables.size());
    for (const ModuleVariable& variable : image.variables)
        bytes += text_size(variable.name.size()) + heap_size(variable.contents.size()) +
                 items_size<Slot>(variable.slots.size());
    return bytes;
}

std::uint64_t lines_footprint(const std::vector<std::string>& lines) noexcept
{
    std::uint64_t bytes = items_size<std::string>(lines.size());
    for (const std::string& line : lines) bytes += text_size(line.size());
    return bytes;
}

} // namespace

std::uint64_t footprint(const Graph& graph) noexcept
{
    std::uint64_t bytes = items_size<Edge>(graph.edges.size()) + items_size<Region>(graph.regions.size()) +
                          items_size<Scalar>(graph.scalars.size()) + items_size<ImageRef>(graph.images.size()) +
                          items_size<Node>(graph.nodes.size());
    for (const Region& region : graph.regions)
        bytes += text_size(region.name.size()) + heap_size(region.contents.size());
    for (const Scalar& scalar : graph.scalars) bytes += text_size(scalar.name.size());
    for (const ImageRef& image : graph.images) bytes += image_footprint(image);
    bytes += lines_footprint(graph.events) + lines_footprint(graph.semaphores);
    for (const Node& node : graph.nodes) bytes += format_of(node).footprint(node);
    return bytes;
}

std::uint64_t footprint(const EntryHeader& header) noexcept
{
    const EntryInfo& info = header.info;
    const FunctionKey& function = header.key.function;
    std::uint64_t bytes = 0;
    for (const std::string* text : {&function.model_info, &function.rank, &function.function, &info.created,
                                    &info.created_by, &info.verification, &info.reason})
        bytes += text_size(text->size());
    bytes += lines_footprint(info.difference) + lines_footprint(info.scalar_proofs) +
             items_size<CompiledWithin>(info.compiled.size());
    const Guards& guards = header.guards;
    bytes += items_size<Fact>(guards.facts.size()) + items_size<TensorSpec>(guards.tensors.size()) +
             items_size<ValueSpec>(guards.values.size());
    for (const Fact& fact : guards.facts) bytes += text_size(fact.name.size()) + text_size(fact.value.size());
    for (const TensorSpec& tensor : guards.tensors)
        bytes += text_size(tensor.name.size()) + text_size(tensor.device.size()) +
                 items_size<std::int64_t>(tensor.sizes.size()) + items_size<std::int64_t>(tensor.strides.size());
    for (const ValueSpec& value : guards.values) bytes += text_size(value.name.size());
    return bytes;
}

} // namespace warmgraph::cachefmt
