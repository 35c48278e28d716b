#include "flat_writer.hpp"

#include <bit>

#include <entry_generated.h>

#include "flat_identifiers.hpp"
#include "identity.hpp"

namespace warmgraph::cachefmt {
namespace {

using flatbuffers::FlatBufferBuilder;
using flatbuffers::Offset;

flat::Digest to_flat(const Digest& digest)
{
    static_assert(sizeof(flat::Digest) == sizeof digest.bytes);
    return std::bit_cast<flat::Digest>(digest.bytes);
}

flat::Dim3 to_flat(const Dim3& dim) { return {dim[0], dim[1], dim[2]}; }

Offset<flatbuffers::Vector<std::uint8_t>> write(FlatBufferBuilder& builder, ByteView bytes)
{
    if (bytes.empty()) return 0; // absent and empty mean the same
    return builder.CreateVector(reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
}

Offset<flatbuffers::String> write(FlatBufferBuilder& builder, const std::string& text)
{
    return builder.CreateString(text.data(), text.size());
}

Offset<flatbuffers::String> write_optional(FlatBufferBuilder& builder, const std::string& text)
{
    if (text.empty()) return 0;
    return write(builder, text);
}

template <class T>
Offset<flatbuffers::Vector<T>> write_numbers(FlatBufferBuilder& builder, const std::vector<T>& numbers)
{
    if (numbers.empty()) return 0;
    return builder.CreateVector(numbers.data(), numbers.size());
}

/// A vector of tables, absent when empty.
template <class Range, class Write>
auto write_tables(FlatBufferBuilder& builder, const Range& range, Write write_one)
{
    std::vector<decltype(write_one(*range.begin()))> offsets;
    offsets.reserve(range.size());
    for (const auto& item : range) offsets.push_back(write_one(item));
    return offsets.empty() ? decltype(builder.CreateVector(offsets))(0) : builder.CreateVector(offsets);
}

Bytes finish(FlatBufferBuilder& builder)
{
    const auto view = std::as_bytes(std::span{builder.GetBufferPointer(), builder.GetSize()});
    return {view.begin(), view.end()};
}

Offset<flat::Info> write(FlatBufferBuilder& builder, const EntryInfo& info)
{
    const auto created = write_optional(builder, info.created);
    const auto created_by = write_optional(builder, info.created_by);
    const auto verification = write_optional(builder, info.verification);
    const auto reason = write_optional(builder, info.reason);
    const auto difference =
        write_tables(builder, info.difference, [&](const std::string& line) { return write(builder, line); });
    const auto proofs =
        write_tables(builder, info.scalar_proofs, [&](const std::string& line) { return write(builder, line); });
    return flat::CreateInfo(builder, created, created_by, info.record_ms, verification, info.node_count,
                            info.image_count, reason, difference, info.unproven, info.answer_ms, proofs,
                            info.library_constants, info.unused_words);
}

Offset<flat::TensorSpec> write(FlatBufferBuilder& builder, const TensorSpec& tensor)
{
    const auto name = write(builder, tensor.name);
    const auto sizes = write_numbers(builder, tensor.sizes);
    const auto strides = write_numbers(builder, tensor.strides);
    const auto device = write(builder, tensor.device);
    return flat::CreateTensorSpec(builder, name, static_cast<flat::DType>(tensor.dtype), sizes, strides, device,
                                  tensor.alignment, tensor.alias_group, tensor.distance.has_value(),
                                  tensor.distance.value_or(0));
}

Offset<flat::Slot> write(FlatBufferBuilder& builder, const Slot& slot)
{
    return flat::CreateSlot(builder, static_cast<flat::SlotKind>(slot.kind), slot.target, slot.offset, slot.width,
                            slot.addend);
}

Offset<flat::Region> write(FlatBufferBuilder& builder, const Region& region)
{
    const auto name = write(builder, region.name);
    const auto contents = write(builder, ByteView{region.contents});
    const flat::Digest digest = to_flat(region.digest);
    return flat::CreateRegion(builder, name, static_cast<flat::RegionKind>(region.kind), region.size, region.alignment,
                              contents, static_cast<flat::MemorySpace>(region.space),
                              region.digest == Digest{} ? nullptr : &digest, region.exclusive,
                              region.inside ? *region.inside + 1 : 0, region.inside_offset);
}

Offset<flat::Image> write(FlatBufferBuilder& builder, const ImageRef& image)
{
    const auto label = write_optional(builder, image.label);
    const auto variables = write_tables(builder, image.variables, [&](const ModuleVariable& variable) {
        const auto name = write(builder, variable.name);
        const auto contents = write(builder, ByteView{variable.contents});
        const auto slots =
            write_tables(builder, variable.slots, [&](const Slot& slot) { return write(builder, slot); });
        return flat::CreateVariable(builder, name, contents, slots);
    });
    const flat::Digest digest = to_flat(image.digest);
    const flat::Digest origin = to_flat(image.origin);
    return flat::CreateImage(builder, &digest, image.size, image.origin == Digest{} ? nullptr : &origin, label,
                             variables);
}

Offset<flat::Param> write(FlatBufferBuilder& builder, const Param& param)
{
    const auto value = write(builder, ByteView{canonical_value(param)});
    const auto slots = write_tables(builder, param.slots, [&](const Slot& slot) { return write(builder, slot); });
    return flat::CreateParam(builder, static_cast<flat::ParamKind>(param.kind), value, param.local_size, slots);
}

Offset<flat::Attribute> write(FlatBufferBuilder& builder, const Attribute& attribute)
{
    const auto value = write(builder, ByteView{canonical_value(attribute)});
    const auto slots = write_tables(builder, attribute.slots, [&](const Slot& slot) { return write(builder, slot); });
    return flat::CreateAttribute(builder, attribute.id, value, slots);
}

/// A vector of structs, absent when empty.
template <class Struct, class Range, class Convert>
Offset<flatbuffers::Vector<const Struct*>> write_structs(FlatBufferBuilder& builder, const Range& range,
                                                         Convert convert)
{
    if (range.empty()) return 0;
    Struct* target = nullptr;
    const auto offset = builder.CreateUninitializedVectorOfStructs(range.size(), &target);
    for (const auto& item : range) *target++ = convert(item);
    return offset;
}

struct WriteWork {
    FlatBufferBuilder& builder;

    Offset<flat::Node> operator()(const EmptyNode&) const { return flat::CreateNode(builder); }

    Offset<flat::Node> operator()(const KernelNode& kernel) const
    {
        const auto name = write(builder, kernel.kernel);
        const auto params =
            write_tables(builder, kernel.params, [&](const Param& param) { return write(builder, param); });
        const flat::Dim3 grid = to_flat(kernel.grid);
        const flat::Dim3 block = to_flat(kernel.block);
        const auto attributes = write_tables(builder, kernel.attributes,
                                             [&](const Attribute& attribute) { return write(builder, attribute); });
        const auto function_attributes = write_structs<flat::FunctionAttribute>(
            builder, kernel.function_attributes,
            [](const FunctionAttribute& item) { return flat::FunctionAttribute{item.id, item.value}; });
        const auto work = flat::CreateKernel(builder, kernel.image, name, &grid, &block, params, kernel.shared_bytes,
                                             kernel.packed, attributes, function_attributes);
        return flat::CreateNode(builder, flat::Work::Kernel, work.Union());
    }

    Offset<flat::Node> operator()(const CopyNode& copy) const
    {
        const auto source = write(builder, copy.source);
        const auto destination = write(builder, copy.destination);
        const auto work = flat::CreateCopy(
            builder, source, destination, copy.size, copy.rows, copy.slices, copy.source_pitch.row,
            copy.source_pitch.slice, copy.destination_pitch.row, copy.destination_pitch.slice,
            static_cast<flat::MemorySpace>(copy.source_space), static_cast<flat::MemorySpace>(copy.destination_space));
        return flat::CreateNode(builder, flat::Work::Copy, work.Union());
    }

    Offset<flat::Node> operator()(const FillNode& fill) const
    {
        const auto destination = write(builder, fill.destination);
        // Required by the schema, so an empty one is written too.
        const auto pattern =
            builder.CreateVector(reinterpret_cast<const std::uint8_t*>(fill.pattern.data()), fill.pattern.size());
        const auto work = flat::CreateFill(builder, destination, pattern, fill.size, fill.rows, fill.pitch);
        return flat::CreateNode(builder, flat::Work::Fill, work.Union());
    }

    Offset<flat::Node> operator()(const EventRecordNode& record) const
    {
        const auto work = flat::CreateEventRecord(builder, record.event);
        return flat::CreateNode(builder, flat::Work::EventRecord, work.Union());
    }

    Offset<flat::Node> operator()(const EventWaitNode& wait) const
    {
        const auto work = flat::CreateEventWait(builder, wait.event);
        return flat::CreateNode(builder, flat::Work::EventWait, work.Union());
    }

    Offset<flat::Node> operator()(const HostNode& host) const
    {
        const auto work = flat::CreateHost(builder, write(builder, host.function));
        return flat::CreateNode(builder, flat::Work::Host, work.Union());
    }

    Offset<flat::Node> operator()(const MemoryOperationsNode& node) const
    {
        const auto operations = write_tables(builder, node.operations, [&](const MemoryOperation& operation) {
            const bool has_address = width_of(operation.kind) != 0 || operation.address != Slot{};
            const auto address = has_address ? write(builder, operation.address) : Offset<flat::Slot>{};
            return flat::CreateMemoryOperation(builder, static_cast<flat::MemoryOperationKind>(operation.kind), address,
                                               operation.value, operation.flags);
        });
        const auto work = flat::CreateMemoryOperations(builder, operations);
        return flat::CreateNode(builder, flat::Work::MemoryOperations, work.Union());
    }

    Offset<flat::Node> operator()(const SemaphoresNode& node) const
    {
        const auto uses = write_tables(builder, node.uses, [&](const SemaphoreUse& use) {
            const auto slot = use.slot ? write(builder, *use.slot) : Offset<flat::Slot>{};
            return flat::CreateSemaphoreUse(builder, use.semaphore, canonical_value(use), slot, use.flags);
        });
        const auto work = flat::CreateSemaphores(builder, static_cast<flat::SemaphoreAction>(node.action), uses);
        return flat::CreateNode(builder, flat::Work::Semaphores, work.Union());
    }
};

/// What edges say beyond their order: a record for each edge that says anything.
Offset<flatbuffers::Vector<const flat::EdgeData*>> write_edge_data(FlatBufferBuilder& builder,
                                                                   const std::vector<Edge>& edges)
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
    FlatBufferBuilder builder{4096};
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
    const flat::Digest guards = to_flat(header.key.guards);
    builder.Finish(flat::CreateHeader(builder, model_info, rank, name, &guards,
                                      static_cast<flat::EntryKind>(header.kind), facts, tensors, values, info),
                   k_header_identifier);
    return finish(builder);
}

Bytes write_payload(const Graph& graph)
{
    FlatBufferBuilder builder{16 * 1024};
    const auto regions =
        write_tables(builder, graph.regions, [&](const Region& region) { return write(builder, region); });
    const auto scalars = write_tables(builder, graph.scalars, [&](const Scalar& scalar) {
        const auto name = write(builder, scalar.name);
        return flat::CreateScalar(builder, name, static_cast<flat::DType>(scalar.type));
    });
    const auto images =
        write_tables(builder, graph.images, [&](const ImageRef& image) { return write(builder, image); });
    const auto nodes =
        write_tables(builder, graph.nodes, [&](const Node& node) { return std::visit(WriteWork{builder}, node); });
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
