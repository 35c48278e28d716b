#include "footprint.hpp"

#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
std::uint64_t footprint(const Graph& graph) noexcept
{
    std::uint64_t bytes = graph.edges.size() * sizeof(Edge);
    for (const Region& region : graph.regions) bytes += sizeof(Region) + region.name.size() + region.contents.size();
    for (const Scalar& scalar : graph.scalars) bytes += sizeof(Scalar) + scalar.name.size();
    for (const ImageRef& image : graph.images) {
        bytes += sizeof(ImageRef) + image.label.size();
        for (const ModuleVariable& variable : image.variables)
            bytes += sizeof(ModuleVariable) + variable.name.size() + variable.contents.size() +
                     variable.slots.size() * sizeof(Slot);
    }
    for (const auto* names : {&graph.events, &graph.semaphores})
        for (const std::string& name : *names) bytes += sizeof(std::string) + name.size();
    for (const Node& node : graph.nodes) bytes += sizeof(Node) + format_of(node).footprint(node);
    return bytes;
}

std::uint64_t footprint(const EntryHeader& header) noexcept
{
    const EntryInfo& info = header.info;
    std::uint64_t bytes = header.key.function.model_info.size() + header.key.function.rank.size() +
                          header.key.function.function.size() + info.created.size() + info.created_by.size() +
                          info.verification.size() + info.reason.size();
    for (const auto* lines : {&info.difference, &info.scalar_proofs})
        for (const std::string& line : *lines) bytes += sizeof(std::string) + line.size();
    for (const Fact& fact : header.guards.facts) bytes += sizeof(Fact) + fact.name.size() + fact.value.size();
    for (const TensorSpec& tensor : header.guards.tensors)
        bytes += sizeof(TensorSpec) + tensor.name.size() + tensor.device.size() +
                 (tensor.sizes.size() + tensor.strides.size()) * sizeof(std::int64_t);
    for (const ValueSpec& value : header.guards.values) bytes += sizeof(ValueSpec) + value.name.size();
    return bytes;
}

} // namespace warmgraph::cachefmt
