#include "flat_writer.hpp"

#include <bit>

#include "flat_build.hpp"
#include "flat_identifiers.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

using flatbuffers::Offset;

flat::Digest to_flat(const Digest& digest)
{
    static_assert(sizeof(flat::Digest) == sizeof digest.bytes);
    return std::bit_cast<flat::Digest>(digest.bytes);
}

Offset<flatbuffers::String> write_optional(FlatBuilder& builder, const std::string& text)
{
    if (text.empty()) return 0;
    return write(builder, text);
}

template <class T>
Offset<flatbuffers::Vector<T>> write_numbers(FlatBuilder& builder, const std::vector<T>& numbers)
{
    if (numbers.empty()) return 0;
    return builder.CreateVector(numbers.data(), numbers.size());
}

Bytes finish(FlatBuilder& builder)
{
    const auto view = std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()});
    return {view.begin(), view.end()};
}

Offset<flat::Info> write(FlatBuilder& builder, const EntryInfo& info)
{
    const auto created = write_optional(builder, info.created);
    const auto created_by = write_optional(builder, info.created_by);
    const auto verification = write_optional(builder, info.verification);
    const auto reason = write_optional(builder, info.reason);
    const auto difference =
        write_tables(builder, info.difference, [&](const std::string& line) { return write(builder, line); });
    const auto proofs =
        write_tables(builder, info.scalar_proofs, [&](const std::string& line) { return write(builder, line); });
    std::vector<flat::CompiledWithin> within;
    for (const CompiledWithin& program : info.compiled)
        within.emplace_back(to_flat(program.program), program.ms, program.at_launch);
    const auto compiled = within.empty() ? Offset<flatbuffers::Vector<const flat::CompiledWithin*>>{}
                                         : builder.CreateVectorOfStructs(within);
    return flat::CreateInfo(builder, created, created_by, info.record_ms, verification, info.node_count,
                            info.image_count, reason, difference, info.unproven, info.answer_ms, proofs,
                            info.library_constants, info.unused_words, compiled);
}

Offset<flat::TensorSpec> write(FlatBuilder& builder, const TensorSpec& tensor)
{
    const auto name = write(builder, tensor.name);
    const auto sizes = write_numbers(builder, tensor.sizes);
    const auto strides = write_numbers(builder, tensor.strides);
    const auto device = write(builder, tensor.device);
    return flat::CreateTensorSpec(builder, name, static_cast<flat::DType>(tensor.dtype), sizes, strides, device,
                                  tensor.alignment, tensor.alias_group, tensor.distance.has_value(),
                                  tensor.distance.value_or(0));
}

Offset<flat::Region> write(FlatBuilder& builder, const Region& region)
{
    const auto name = write(builder, region.name);
    const auto contents = write(builder, ByteView{region.contents});
    const flat::Digest digest = to_flat(region.digest);
    return flat::CreateRegion(builder, name, static_cast<flat::RegionKind>(region.kind), region.size, region.alignment,
                              contents, static_cast<flat::MemorySpace>(region.space),
                              region.digest == Digest{} ? nullptr : &digest, region.exclusive,
                              region.inside ? *region.inside + 1 : 0, region.inside_offset);
}

Offset<flat::Image> write(FlatBuilder& builder, const ImageRef& image)
{
    const auto label = write_optional(builder, image.label);
    const auto variables = write_tables(builder, image.variables, [&](const ModuleVariable& variable) {
        const auto name = write(builder, variable.name);
        const auto contents = write(builder, ByteView{variable.contents});
        return flat::CreateVariable(builder, name, contents, write_slots(builder, variable.slots));
    });
    const flat::Digest digest = to_flat(image.digest);
    const flat::Digest origin = to_flat(image.origin);
    return flat::CreateImage(builder, &digest, image.size, image.origin == Digest{} ? nullptr : &origin, label,
                             variables);
}

/// Writes a record for each edge that has properties.
Offset<flatbuffers::Vector<const flat::EdgeData*>> write_edge_data(FlatBuilder& builder, const std::vector<Edge>& edges)
{
    std::vector<flat::EdgeData> records;
    for (std::size_t i = 0; i < edges.size(); ++i)
        if (const EdgeData& data = edges[i].data; data != EdgeData{})
            records.emplace_back(static_cast<std::uint32_t>(i), data.from_port, data.to_port, data.type);
    return write_structs<flat::EdgeData>(builder, records, [](const flat::EdgeData& record) { return record; });
}

} // namespace

Bytes write_header(const EntryHeader& header)
{
    FlatBuilder builder{4096};
    const FunctionKey& function = header.key.function;
    const auto model_info = write(builder, function.model_info);
    const auto rank = write(builder, function.rank);
    const auto name = write(builder, function.function);
    const auto facts = write_tables(builder, header.guards.facts, [&](const Fact& fact) {
        const auto fact_name = write(builder, fact.name);
        const auto value = write(builder, fact.value);
        return flat::CreateFact(builder, fact_name, value, static_cast<flat::Role>(fact.role));
    });
    const auto tensors =
        write_tables(builder, header.guards.tensors, [&](const TensorSpec& tensor) { return write(builder, tensor); });
    const auto values = write_tables(builder, header.guards.values, [&](const ValueSpec& value) {
        const auto value_name = write(builder, value.name);
        return flat::CreateValueSpec(builder, value_name, static_cast<flat::DType>(value.dtype), value.bits);
    });
    const auto info = write(builder, header.info);
    const flat::Digest guards = to_flat(header.key.guards_digest);
    const auto part = header.recording.value_or(RecordingPart{});
    const flat::Recording recording{part.id.high, part.id.low, static_cast<flat::Part>(part.part)};
    builder.Finish(flat::CreateHeader(builder, model_info, rank, name, &guards,
                                      static_cast<flat::EntryKind>(header.kind), facts, tensors, values, info,
                                      header.recording ? &recording : nullptr),
                   k_header_identifier);
    return finish(builder);
}

Bytes write_payload(const Graph& graph)
{
    FlatBuilder builder{16 * 1024};
    const auto regions =
        write_tables(builder, graph.regions, [&](const Region& region) { return write(builder, region); });
    const auto scalars = write_tables(builder, graph.scalars, [&](const Scalar& scalar) {
        const auto name = write(builder, scalar.name);
        return flat::CreateScalar(builder, name, static_cast<flat::DType>(scalar.type));
    });
    const auto images =
        write_tables(builder, graph.images, [&](const ImageRef& image) { return write(builder, image); });
    const auto nodes =
        write_tables(builder, graph.nodes, [&](const Node& node) { return format_of(node).to_flat(builder, node); });
    const auto edges = write_structs<flat::Edge>(builder, graph.edges,
                                                 [](const Edge& edge) { return flat::Edge{edge.from, edge.to}; });
    const auto events =
        write_tables(builder, graph.events, [&](const std::string& name) { return write(builder, name); });
    const auto edge_data = write_edge_data(builder, graph.edges);
    const auto semaphores =
        write_tables(builder, graph.semaphores, [&](const std::string& name) { return write(builder, name); });
    builder.Finish(flat::CreatePayload(builder, regions, scalars, images, nodes, edges, events, edge_data, semaphores),
                   k_payload_identifier);
    return finish(builder);
}

} // namespace warmgraph::cachefmt
