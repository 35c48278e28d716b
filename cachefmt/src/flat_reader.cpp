#include "flat_reader.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "flat_footprint.hpp"
#include "flat_identifiers.hpp"
#include "flat_parse.hpp"
#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::size_t k_alignment = 8;            // alignment of the widest field in the schema
constexpr flatbuffers::uoffset_t k_max_depth = 8; // the schema nests 5 deep: payload, node, work, param, slot

/// The bytes themselves, or a copy if they are not 8-byte aligned (a view into a larger buffer).
class AlignedBytes {
public:
    explicit AlignedBytes(ByteView bytes) : m_view(bytes)
    {
        if (reinterpret_cast<std::uintptr_t>(bytes.data()) % k_alignment == 0) return;
        m_copy.assign(bytes.begin(), bytes.end());
        m_view = m_copy;
    }
    AlignedBytes(const AlignedBytes&) = delete;
    AlignedBytes& operator=(const AlignedBytes&) = delete;
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
const Root* verified_root(const AlignedBytes& bytes, const char* identifier, std::uint64_t budget)
{
    // A table that is not shared takes at least 4 bytes, its offset to the vtable. The verifier counts a shared table
    // at each use.
    const auto all = static_cast<flatbuffers::uoffset_t>(bytes.size() / 4);
    flatbuffers::Verifier verifier{bytes.data(), bytes.size(), k_max_depth, std::min(all, most_tables(budget))};
    if (!verifier.VerifyBuffer<Root>(identifier)) return nullptr;
    return flatbuffers::GetRoot<Root>(bytes.data());
}

Digest to_digest(const flat::Digest* digest) { return digest == nullptr ? Digest{} : std::bit_cast<Digest>(*digest); }

std::vector<std::int64_t> to_numbers(const flatbuffers::Vector<std::int64_t>* numbers)
{
    if (numbers == nullptr) return {};
    // The verifier checks the alignment of a vector's length, not of its 8-byte elements: a hostile vector may start
    // them at an offset of 4 (found by UBSan).
    std::vector<std::int64_t> out(numbers->size());
    if (!out.empty()) std::memcpy(out.data(), numbers->Data(), out.size() * sizeof(std::int64_t));
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

std::vector<CompiledWithin> to_compiled(const flatbuffers::Vector<const flat::CompiledWithin*>* programs)
{
    if (programs == nullptr) return {};
    // The elements are copied, as the numbers above: they may not be aligned for doubles.
    std::vector<CompiledWithin> out;
    out.reserve(programs->size());
    for (flatbuffers::uoffset_t i = 0; i < programs->size(); ++i) {
        std::array<std::byte, sizeof(flat::CompiledWithin)> bytes;
        std::memcpy(bytes.data(), programs->Data() + i * bytes.size(), bytes.size());
        const auto program = std::bit_cast<flat::CompiledWithin>(bytes);
        out.push_back({to_digest(&program.program()), program.ms(), program.at_launch()});
    }
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
            .compiled = to_compiled(info.compiled()),
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

ImageRef to_image(const flat::Image& image)
{
    return {to_digest(image.digest()), image.size(), to_digest(image.origin()), to_text(image.label()),
            to_vector<ModuleVariable>(image.variables(), [](const flat::Variable& variable) {
                return ModuleVariable{to_text(variable.name()), to_bytes(variable.contents()),
                                      to_vector<Slot>(variable.slots(), to_slot)};
            })};
}

/// REQUIRES: check_counts() accepted the payload, so that every record names an edge.
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
    const AlignedBytes aligned{bytes};
    const std::uint64_t budget = limits.header_bytes;
    const auto* flat = verified_root<flat::Header>(aligned, k_header_identifier, budget);
    if (flat == nullptr)
        return fail(ErrorCode::corrupt, "the header of {} bytes is not a valid flatbuffer", bytes.size());
    if (auto ok = check_footprint(*flat, budget); !ok) return std::unexpected(std::move(ok.error()));
    EntryHeader header;
    header.key.function = {to_text(flat->model_info()), to_text(flat->rank()), to_text(flat->function())};
    header.key.guards_digest = to_digest(flat->guards_digest());
    header.kind = static_cast<EntryKind>(flat->kind());
    header.guards = to_guards(*flat);
    header.info = to_info(*flat->info());
    if (const auto* part = flat->recording())
        header.recording = RecordingPart{{part->high(), part->low()}, static_cast<Part>(part->part())};
    return header;
}

Result<Graph> read_payload(ByteView bytes, const Limits& limits)
{
    const AlignedBytes aligned{bytes};
    const std::uint64_t budget = memory_budget(bytes.size(), limits.payload_bytes);
    const auto* flat = verified_root<flat::Payload>(aligned, k_payload_identifier, budget);
    if (flat == nullptr)
        return fail(ErrorCode::corrupt, "the payload of {} bytes is not a valid flatbuffer", bytes.size());
    if (auto ok = check_counts(*flat, limits); !ok) return std::unexpected(std::move(ok.error()));
    if (auto ok = check_footprint(*flat, budget); !ok) return std::unexpected(std::move(ok.error()));
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
    graph.nodes =
        to_vector<Node>(flat->nodes(), [](const flat::Node& node) { return format_of(node).from_flat(node); });
    graph.edges = to_edges(*flat);
    return graph;
}

} // namespace warmgraph::cachefmt
