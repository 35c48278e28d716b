#include "nodes/box.hpp"

#include "describe.hpp"
#include "validate_slot.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::uint64_t k_pitch_max = 1ULL << 48; // as for regions: no device can address more

/// Rows must not overlap, and slices must not overlap. A pitch that is not needed must be 0 or valid.
Result<void> check_shape(std::string_view what, const Box& box)
{
    if (box.size == 0) return fail(ErrorCode::corrupt, "{} has 0 bytes", what);
    if (box.rows == 0 || box.slices == 0)
        return fail(ErrorCode::corrupt, "{} has {} rows and {} slices, expected 1 or more", what, box.rows, box.slices);
    const Pitch& pitch = box.pitch;
    if (pitch.row > k_pitch_max || pitch.slice > k_pitch_max)
        return fail(ErrorCode::corrupt, "{}: pitches of {} and {} bytes, expected at most {}", what, pitch.row,
                    pitch.slice, k_pitch_max);
    const bool row_needed = box.rows > 1 || box.slices > 1 || pitch.row != 0 || pitch.slice != 0;
    if (row_needed && pitch.row < box.size)
        return fail(ErrorCode::corrupt, "{}: pitch of {} bytes is less than a row's {}", what, pitch.row, box.size);
    if (box.slices == 1 && pitch.slice == 0) return {};
    if (pitch.slice % pitch.row != 0 || pitch.slice / pitch.row < box.rows)
        return fail(ErrorCode::corrupt, "{}: slice pitch of {} bytes, expected a multiple of {} that holds {} rows",
                    what, pitch.slice, pitch.row, box.rows);
    return {};
}

} // namespace

std::optional<std::uint64_t> extent(const Box& box)
{
    std::uint64_t slices = 0, rows = 0, total = 0;
    if (__builtin_mul_overflow(box.slices - 1, box.pitch.slice, &slices)) return std::nullopt;
    if (__builtin_mul_overflow(box.rows - 1, box.pitch.row, &rows)) return std::nullopt;
    if (__builtin_add_overflow(slices, rows, &total)) return std::nullopt;
    if (__builtin_add_overflow(total, box.size, &total)) return std::nullopt;
    return total;
}

Result<void> check_end(std::string_view what, const Slot& end, const Box& box, const Graph& graph)
{
    if (end.kind != SlotKind::region || end.offset != 0)
        return fail(ErrorCode::corrupt, "{} is not a region at offset 0", what);
    if (auto ok = validate_slot(end, Reach::inside, graph); !ok) return within(what, std::move(ok.error()));
    if (auto ok = check_shape(what, box); !ok) return ok;
    const Region& region = graph.regions[end.target];
    const auto bytes = extent(box);
    if (!bytes || *bytes > region.size - static_cast<std::uint64_t>(end.addend))
        return fail(ErrorCode::corrupt, "{}: {} at {} run past region '{}' of {} bytes", what, shape_text(box),
                    end.addend, printable(region.name), region.size);
    return {};
}

Result<void> check_writable(const Slot& destination, const Graph& graph)
{
    const Region& region = graph.regions[destination.target];
    if (region.kind == RegionKind::weights || region.kind == RegionKind::constant)
        return fail(ErrorCode::corrupt, "destination '{}' is {}, which is read only", printable(region.name),
                    to_string(region.kind));
    return {};
}

std::string shape_text(const Box& box)
{
    if (box.rows == 1 && box.slices == 1) return fmt::format("{} bytes", box.size);
    const std::string rows = fmt::format("{} rows of {} bytes", box.rows, box.size);
    return box.slices == 1 ? rows : fmt::format("{} slices of {}", box.slices, rows);
}

std::string box_size(const Box& box)
{
    std::string text = size_text(box.size);
    if (box.rows != 1 || box.slices != 1)
        text = fmt::format("{} row{} of {}", box.rows, box.rows == 1 ? "" : "s", text);
    return box.slices == 1 ? text : fmt::format("{} slices of {}", box.slices, text);
}

std::string to_text(const Pitch& pitch)
{
    return pitch.slice == 0 ? fmt::format("{}", pitch.row) : fmt::format("{}/{}", pitch.row, pitch.slice);
}

std::string end_text(const Slot& end, const Pitch& pitch, MemorySpace space, const Graph& graph)
{
    return fmt::format("{}{}{}", to_text(end, graph), space == MemorySpace::host ? " (host)" : "",
                       pitch == Pitch{} ? "" : " pitch " + to_text(pitch));
}

} // namespace warmgraph::cachefmt
