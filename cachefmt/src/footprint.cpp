#include "footprint.hpp"

namespace warmgraph::cachefmt {
namespace {

std::uint64_t footprint(const Node& node) noexcept
{
    std::uint64_t bytes = sizeof(Node);
    if (const auto* kernel = std::get_if<KernelNode>(&node)) {
        bytes += kernel->kernel.size();
        for (const Param& param : kernel->params)
            bytes += sizeof(Param) + param.value.size() + param.slots.size() * sizeof(Slot);
        for (const Attribute& attribute : kernel->attributes)
            bytes += sizeof(Attribute) + attribute.value.size() + attribute.slots.size() * sizeof(Slot);
        bytes += kernel->function_attributes.size() * sizeof(FunctionAttribute);
    } else if (const auto* fill = std::get_if<FillNode>(&node)) {
        bytes += fill->pattern.size();
    } else if (const auto* host = std::get_if<HostNode>(&node)) {
        bytes += host->function.size();
    } else if (const auto* batch = std::get_if<MemoryOperationsNode>(&node)) {
        bytes += batch->operations.size() * sizeof(MemoryOperation);
    } else if (const auto* semaphores = std::get_if<SemaphoresNode>(&node)) {
        bytes += semaphores->uses.size() * sizeof(SemaphoreUse);
    }
    return bytes;
}

} // namespace

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
    for (const Node& node : graph.nodes) bytes += footprint(node);
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
