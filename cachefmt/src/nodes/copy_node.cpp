// Memory copies, between two regions or within one.
#include <algorithm>
#include <utility>

#include "describe.hpp"
#include "digest_put.hpp"
#include "flat_parse.hpp"
#include "nodes/box.hpp"
#include "nodes/node_format_of.hpp"

namespace warmgraph::cachefmt {
namespace {

Box source_box(const CopyNode& copy) { return {copy.size, copy.rows, copy.slices, copy.source_pitch}; }
Box destination_box(const CopyNode& copy) { return {copy.size, copy.rows, copy.slices, copy.destination_pitch}; }

/// An end in host memory needs a host region: the processor accesses it, and a device address would crash it.
Result<void> check_space(std::string_view what, const Slot& end, MemorySpace space, const Graph& graph)
{
    if (space > MemorySpace::host)
        return fail(ErrorCode::corrupt, "{}: memory space {} is unknown", what, static_cast<int>(space));
    const Region& region = graph.regions[end.target];
    if (space == MemorySpace::host && region.space != MemorySpace::host)
        return fail(ErrorCode::corrupt, "{} is host memory, its region '{}' is device memory", what,
                    printable(region.name));
    return {};
}

/// True if two boxes of the same shape and pitch, `distance` bytes apart, share a byte. REQUIRES: check_end() holds, so
/// that the distance splits into slices, rows and bytes in at most two ways each.
bool overlap(const Box& box, std::uint64_t distance)
{
    const auto near = [](std::uint64_t from, std::uint64_t pitch) {
        return pitch == 0 ? std::pair{std::uint64_t{0}, std::uint64_t{0}} : std::pair{from / pitch, from / pitch + 1};
    };
    const auto gap = [](std::uint64_t a, std::uint64_t b) { return a > b ? a - b : b - a; };
    const auto [slice, next_slice] = near(distance, box.pitch.slice);
    for (const std::uint64_t slices : {slice, next_slice}) {
        if (slices >= box.slices) continue;
        const std::uint64_t in_slice = gap(distance, slices * box.pitch.slice);
        const auto [row, next_row] = near(in_slice, box.pitch.row);
        for (const std::uint64_t rows : {row, next_row})
            if (rows < box.rows && gap(in_slice, rows * box.pitch.row) < box.size) return true;
    }
    return false;
}

/// Refuses overlapping ends. If their pitches differ, ends whose extents overlap are refused too: an exact answer would
/// need a search.
Result<void> check_overlap(const CopyNode& copy, const Box& source, const Box& destination)
{
    if (copy.source.target != copy.destination.target) return {};
    const bool source_first = copy.source.addend <= copy.destination.addend;
    const auto [low, high] = std::minmax(copy.source.addend, copy.destination.addend);
    const auto distance = static_cast<std::uint64_t>(high - low);
    if (distance >= extent(source_first ? source : destination)) return {};
    if (source.pitch == destination.pitch && !overlap(source, distance)) return {};
    return fail(ErrorCode::corrupt, "source and destination overlap: {} at {} and at {} of one region",
                shape_text(source), copy.source.addend, copy.destination.addend);
}

void compare_pitches(const NodeDifference& out, std::string_view what, const Pitch& a, const Pitch& b)
{
    if (a != b) out.line(what, to_text(a), to_text(b));
}

void compare_spaces(const NodeDifference& out, std::string_view what, MemorySpace a, MemorySpace b)
{
    if (a != b) out.line(what, to_string(a), to_string(b));
}

void put_pitch(Sha256& hash, const Pitch& pitch)
{
    put(hash, pitch.row);
    put(hash, pitch.slice);
}

void set_pitch(Json& object, const char* key, const Pitch& pitch)
{
    Json& out = set_object(object, key);
    set_number(out, "row", pitch.row);
    set_number(out, "slice", pitch.slice);
}

struct CopyFormat : FixedSize {
    using Work = CopyNode;
    using Flat = flat::Copy;

    static std::string_view kind(const CopyNode&) noexcept { return "copy"; }
    static void digest(Sha256& hash, const CopyNode& copy);
    static void compare(const NodeDifference& out, const CopyNode& a, const CopyNode& b);
    static Result<void> validate(const CopyNode& copy, const Graph& graph, const Limits& limits);
    static flatbuffers::Offset<flat::Copy> to_flat(FlatBuilder& builder, const CopyNode& copy);
    static CopyNode from_flat(const flat::Copy& copy);
    static void json(Json& out, const CopyNode& copy, const Graph& graph);
    static NodeRow row(const CopyNode& copy, const Graph& graph);
    static std::vector<std::string> label(const CopyNode& copy, const Graph& graph)
    {
        return {fmt::format("copy {}", box_size(source_box(copy))), to_text(copy.source, graph),
                fmt::format("-> {}", to_text(copy.destination, graph))};
    }
};

void CopyFormat::digest(Sha256& hash, const CopyNode& copy)
{
    put(hash, copy.source);
    put(hash, copy.destination);
    put(hash, copy.size);
    put(hash, copy.rows);
    put(hash, copy.slices);
    put_pitch(hash, copy.source_pitch);
    put_pitch(hash, copy.destination_pitch);
    put(hash, copy.source_space);
    put(hash, copy.destination_space);
}

void CopyFormat::compare(const NodeDifference& out, const CopyNode& a, const CopyNode& b)
{
    out.part("source").slot(a.source, b.source);
    out.part("destination").slot(a.destination, b.destination);
    out.number("size", a.size, b.size);
    out.number("rows", a.rows, b.rows);
    out.number("slices", a.slices, b.slices);
    compare_pitches(out, "source pitch", a.source_pitch, b.source_pitch);
    compare_pitches(out, "destination pitch", a.destination_pitch, b.destination_pitch);
    compare_spaces(out, "source memory", a.source_space, b.source_space);
    compare_spaces(out, "destination memory", a.destination_space, b.destination_space);
}

Result<void> CopyFormat::validate(const CopyNode& copy, const Graph& graph, const Limits&)
{
    const Box source = source_box(copy);
    const Box destination = destination_box(copy);
    auto ok = check_end("source", copy.source, source, graph);
    if (ok) ok = check_end("destination", copy.destination, destination, graph);
    if (ok) ok = check_space("source", copy.source, copy.source_space, graph);
    if (ok) ok = check_space("destination", copy.destination, copy.destination_space, graph);
    if (ok) ok = check_overlap(copy, source, destination);
    if (ok) ok = check_writable(copy.destination, graph);
    return ok;
}

flatbuffers::Offset<flat::Copy> CopyFormat::to_flat(FlatBuilder& builder, const CopyNode& copy)
{
    const auto source = write(builder, copy.source);
    const auto destination = write(builder, copy.destination);
    return flat::CreateCopy(builder, source, destination, copy.size, copy.rows, copy.slices, copy.source_pitch.row,
                            copy.source_pitch.slice, copy.destination_pitch.row, copy.destination_pitch.slice,
                            static_cast<flat::MemorySpace>(copy.source_space),
                            static_cast<flat::MemorySpace>(copy.destination_space));
}

CopyNode CopyFormat::from_flat(const flat::Copy& copy)
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

void CopyFormat::json(Json& out, const CopyNode& copy, const Graph& graph)
{
    set_slot(out, "source", copy.source, graph);
    set_slot(out, "destination", copy.destination, graph);
    set_number(out, "size", copy.size);
    set_number(out, "rows", copy.rows);
    set_number(out, "slices", copy.slices);
    set_pitch(out, "source_pitch", copy.source_pitch);
    set_pitch(out, "destination_pitch", copy.destination_pitch);
    set_text(out, "source_space", to_string(copy.source_space));
    set_text(out, "destination_space", to_string(copy.destination_space));
}

NodeRow CopyFormat::row(const CopyNode& copy, const Graph& graph)
{
    return {.parameters =
                fmt::format("{} from {} to {}", box_size(source_box(copy)),
                            end_text(copy.source, copy.source_pitch, copy.source_space, graph),
                            end_text(copy.destination, copy.destination_pitch, copy.destination_space, graph))};
}

} // namespace

const NodeFormat& format_of(std::type_identity<CopyNode>) noexcept
{
    static const NodeFormatOf<CopyFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
