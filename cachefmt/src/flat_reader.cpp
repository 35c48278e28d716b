#include "flat_reader.hpp"

#include <bit>
#include <cstring>

#include <entry_generated.h>

#include "flat_footprint.hpp"
#include "flat_identifiers.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::size_t k_alignment = 8;            // of the widest field in the schema
constexpr flatbuffers::uoffset_t k_max_depth = 8; // the schema nests 5 deep: payload, node, work, param, slot

/// The bytes themselves, or a copy where they do not lie on an 8-byte boundary (a view into a larger buffer).
class Aligned {
public:
    explicit Aligned(ByteView bytes) : m_view(bytes)
    {
        if (reinterpret_cast<std::uintptr_t>(bytes.data()) % k_alignment == 0) return;
        m_copy.assign(bytes.begin(), bytes.end());
        m_view = m_copy;
    }
    Aligned(const Aligned&) = delete;
    Aligned& operator=(const Aligned&) = delete;
    [[nodiscard]] const std::uint8_t* data() const noexcept
    {
        return reinterpret_cast<const std::uint8_t*>(m_view.data());
    }
    [[nodiscard]] std::size_t size() const noexcept { return m_view.size(); }

private:
    Bytes m_copy;
    ByteView m_view;
};

template <class Root>
const Root* verified_root(const Aligned& bytes, const char* identifier)
{
    // Every table that is not shared takes at least its 4-byte offset to the vtable.
    const auto max_tables = static_cast<flatbuffers::uoffset_t>(bytes.size() / 4);
    flatbuffers::Verifier verifier{bytes.data(), bytes.size(), k_max_depth, max_tables};
    if (!verifier.VerifyBuffer<Root>(identifier)) return nullptr;
    return flatbuffers::GetRoot<Root>(bytes.data());
}

std::string to_text(const flatbuffers::String* text) { return text == nullptr ? std::string{} : text->str(); }

Bytes to_bytes(const flatbuffers::Vector<std::uint8_t>* bytes)
{
    if (bytes == nullptr) return {};
    const auto view = std::as_bytes(std::span{bytes->data(), bytes->size()});
    return {view.begin(), view.end()};
}

Digest to_digest(const flat::Digest* digest) { return digest == nullptr ? Digest{} : std::bit_cast<Digest>(*digest); }

std::vector<std::int64_t> to_numbers(const flatbuffers::Vector<std::int64_t>* numbers)
{
    if (numbers == nullptr) return {};
    // The verifier aligns a vector's length, not its 8-byte elements: a hostile one may start them at 4 (found by UBSan).
    std::vector<std::int64_t> out(numbers->size());
    if (!out.empty()) std::memcpy(out.data(), numbers->Data(), out.size() * sizeof(std::int64_t));
    return out;
}

template <class Out, class Tables, class Convert>
std::vector<Out> to_vector(const Tables* tables, Convert convert)
{
    std::vector<Out> out;
    if (tables == nullptr) return out;
    out.reserve(tables->size());
    for (const auto* table : *tables) out.push_back(convert(*table));
    return out;
}

std::vector<std::string> to_texts(const flatbuffers::Vector<flatbuffers::Offset<flatbuffers::String>>* texts)
{
    std::vector<std::string> out;
    if (texts == nullptr) return out;
    out.reserve(texts->size());
    for (const auto* text : *texts) out.push_back(to_text(text));
    return out;
}

EntryInfo to_info(const flat::Info& info)
{
    return {.created = to_text(info.created()),
            .created_by = to_text(info.created_by()),
            .record_ms = info.record_ms(),
            .answer_ms = info.answer_ms(),
            .verification = to_text(info.verification()),
            .node_count = info.node_count(),
            .image_count = info.image_count(),
            .unproven = info.unproven(),
            .scalar_proofs = to_texts(info.scalar_proofs()),
            .library_constants = info.library_constants(),
            .unused_words = info.unused_words(),
            .reason = to_text(info.reason()),
            .difference = to_texts(info.difference())};
}

Guards to_guards(const flat::Header& header)
{
    return {.facts = to_vector<Fact>(header.facts(),
                                     [](const flat::Fact& fact) {
                                         return Fact{to_text(fact.name()), to_text(fact.value()),
                                                     static_cast<Role>(fact.role())};
                                     }),
            .tensors = to_vector<TensorSpec>(
                header.tensors(),
                [](const flat::TensorSpec& tensor) {
                    return TensorSpec{to_text(tensor.name()),
                                      static_cast<DType>(tensor.dtype()),
                                      to_numbers(tensor.sizes()),
                                      to_numbers(tensor.strides()),
                                      to_text(tensor.device()),
                                      tensor.alignment(),
                                      tensor.alias_group(),
                                      tensor.has_distance() ? std::optional{tensor.distance()} : std::nullopt};
                }),
            .values = to_vector<ValueSpec>(header.values(), [](const flat::ValueSpec& value) {
                return ValueSpec{to_text(value.name()), static_cast<DType>(value.dtype()), value.bits()};
            })};
}

Slot to_slot(const flat::Slot& slot)
{
    return {static_cast<SlotKind>(slot.kind()), slot.target(), slot.offset(), slot.width(), slot.addend()};
}

Dim3 to_dim3(const flat::Dim3& dim) { return {dim.x(), dim.y(), dim.z()}; }

Param to_param(const flat::Param& param)
{
    return {static_cast<ParamKind>(param.kind()), to_bytes(param.value()), param.local_size(),
            to_vector<Slot>(param.slots(), to_slot)};
}

KernelNode to_kernel(const flat::Kernel& kernel)
{
    return {.image = kernel.image(),
            .kernel = to_text(kernel.name()),
            .grid = to_dim3(*kernel.grid()),
            .block = to_dim3(*kernel.block()),
            .params = to_vector<Param>(kernel.params(), to_param),
            .shared_bytes = kernel.shared_bytes(),
            .packed = kernel.packed(),
            .attributes = to_vector<Attribute>(kernel.attributes(),
                                               [](const flat::Attribute& attribute) {
                                                   return Attribute{attribute.id(), to_bytes(attribute.value()),
                                                                    to_vector<Slot>(attribute.slots(), to_slot)};
                                               }),
            .function_attributes =
                to_vector<FunctionAttribute>(kernel.function_attributes(), [](const flat::FunctionAttribute& item) {
                    return FunctionAttribute{item.id(), item.value()};
                })};
}

CopyNode to_copy(const flat::Copy& copy)
{
    return {.source = to_slot(*copy.source()),
            .destination = to_slot(*copy.destination()),
            .size = copy.size(),
            .rows = copy.rows(),
            .slices = copy.slices(),
            .source_pitch = {copy.source_row(), copy.source_slice()},
            .destination_pitch = {copy.destination_row(), copy.destination_slice()},
            .source_space = static_cast<MemorySpace>(copy.source_space()),
            .destination_space = static_cast<MemorySpace>(copy.destination_space())};
}

MemoryOperation to_operation(const flat::MemoryOperation& operation)
{
    return {static_cast<MemoryOperationKind>(operation.kind()),
            operation.address() == nullptr ? Slot{} : to_slot(*operation.address()), operation.value(),
            operation.flags()};
}

SemaphoreUse to_use(const flat::SemaphoreUse& use)
{
    return {use.semaphore(), use.value(), use.slot() == nullptr ? std::nullopt : std::optional{to_slot(*use.slot())},
            use.flags()};
}

/// REQUIRES: check_counts accepted the payload (the union's type is known and its table present).
Node to_node(const flat::Node& node)
{
    switch (node.work_type()) {
    case flat::Work::Kernel: return to_kernel(*node.work_as_Kernel());
    case flat::Work::Copy: return to_copy(*node.work_as_Copy());
    case flat::Work::Fill: {
        const flat::Fill& fill = *node.work_as_Fill();
        return FillNode{to_slot(*fill.destination()), to_bytes(fill.pattern()), fill.size(), fill.rows(), fill.pitch()};
    }
    case flat::Work::EventRecord: return EventRecordNode{node.work_as_EventRecord()->event()};
    case flat::Work::EventWait: return EventWaitNode{node.work_as_EventWait()->event()};
    case flat::Work::Host: return HostNode{to_text(node.work_as_Host()->function())};
    case flat::Work::MemoryOperations:
        return MemoryOperationsNode{
            to_vector<MemoryOperation>(node.work_as_MemoryOperations()->operations(), to_operation)};
    case flat::Work::Semaphores: {
        const flat::Semaphores& semaphores = *node.work_as_Semaphores();
        return SemaphoresNode{static_cast<SemaphoreAction>(semaphores.action()),
                              to_vector<SemaphoreUse>(semaphores.uses(), to_use)};
    }
    case flat::Work::NONE: break;
    }
    return EmptyNode{};
}

ImageRef to_image(const flat::Image& image)
{
    return {to_digest(image.digest()), image.size(), to_digest(image.origin()), to_text(image.label()),
            to_vector<ModuleVariable>(image.variables(), [](const flat::Variable& variable) {
                return ModuleVariable{to_text(variable.name()), to_bytes(variable.contents()),
                                      to_vector<Slot>(variable.slots(), to_slot)};
            })};
}

/// REQUIRES: check_counts accepted the payload (every record names an edge).
std::vector<Edge> to_edges(const flat::Payload& payload)
{
    auto edges =
        to_vector<Edge>(payload.edges(), [](const flat::Edge& edge) { return Edge{edge.from(), edge.to(), {}}; });
    if (payload.edge_data() == nullptr) return edges;
    for (const auto* record : *payload.edge_data())
        edges[record->edge()].data = {record->from_port(), record->to_port(), record->type()};
    return edges;
}

} // namespace

Result<EntryHeader> read_header(ByteView bytes, const Limits& limits)
{
    const Aligned aligned{bytes};
    const auto* flat = verified_root<flat::Header>(aligned, k_header_identifier);
    if (flat == nullptr) return fail(ErrorCode::corrupt, "header of {} bytes is no valid flatbuffer", bytes.size());
    if (const auto size = flat_footprint(*flat); size > limits.header_bytes)
        return fail(ErrorCode::corrupt, "header would take {} bytes of memory, over the limit of {}", size,
                    limits.header_bytes);
    EntryHeader header;
    header.key.function = {to_text(flat->model_info()), to_text(flat->rank()), to_text(flat->function())};
    header.key.guards = to_digest(flat->guards_digest());
    header.kind = static_cast<EntryKind>(flat->kind());
    header.guards = to_guards(*flat);
    header.info = to_info(*flat->info());
    return header;
}

Result<Graph> read_payload(ByteView bytes, const Limits& limits)
{
    const Aligned aligned{bytes};
    const auto* flat = verified_root<flat::Payload>(aligned, k_payload_identifier);
    if (flat == nullptr) return fail(ErrorCode::corrupt, "payload of {} bytes is no valid flatbuffer", bytes.size());
    if (auto ok = check_counts(*flat, limits); !ok) return std::unexpected(std::move(ok.error()));
    if (const auto size = flat_footprint(*flat); size > limits.payload_bytes)
        return fail(ErrorCode::corrupt, "graph would take {} bytes of memory, over the limit of {}", size,
                    limits.payload_bytes);
    Graph graph;
    graph.regions = to_vector<Region>(flat->regions(), [](const flat::Region& region) {
        return Region{to_text(region.name()),
                      static_cast<RegionKind>(region.kind()),
                      region.size(),
                      region.alignment(),
                      to_bytes(region.contents()),
                      static_cast<MemorySpace>(region.space()),
                      to_digest(region.digest()),
                      region.exclusive(),
                      region.inside() == 0 ? std::nullopt : std::optional{region.inside() - 1},
                      region.inside_offset()};
    });
    graph.scalars = to_vector<Scalar>(flat->scalars(), [](const flat::Scalar& scalar) {
        return Scalar{to_text(scalar.name()), static_cast<DType>(scalar.type())};
    });
    graph.images = to_vector<ImageRef>(flat->images(), to_image);
    graph.events = to_texts(flat->events());
    graph.semaphores = to_texts(flat->semaphores());
    graph.nodes = to_vector<Node>(flat->nodes(), to_node);
    graph.edges = to_edges(*flat);
    return graph;
}

} // namespace warmgraph::cachefmt
