// Copies and fills: boxes of rows and slices that must lie in their regions. Memory operations: words that must.
#include <algorithm>
#include <bit>
#include <optional>
#include <utility>

#include "cuda_names.hpp"
#include "describe.hpp"
#include "validate_node.hpp"
#include "validate_slot.hpp"

namespace warmgraph::cachefmt {
namespace {

constexpr std::uint64_t k_pitch_max = 1ULL << 48; // as for regions: no device addresses more

struct Box {
    std::uint64_t size = 0; ///< bytes of one row
    std::uint64_t rows = 1;
    std::uint64_t slices = 1;
    Pitch pitch;
};

/// Bytes from the first to the last; nullopt when they do not fit 64 bits.
std::optional<std::uint64_t> extent(const Box& box)
{
    std::uint64_t slices = 0, rows = 0, total = 0;
    if (__builtin_mul_overflow(box.slices - 1, box.pitch.slice, &slices)) return std::nullopt;
    if (__builtin_mul_overflow(box.rows - 1, box.pitch.row, &rows)) return std::nullopt;
    if (__builtin_add_overflow(slices, rows, &total)) return std::nullopt;
    if (__builtin_add_overflow(total, box.size, &total)) return std::nullopt;
    return total;
}

/// Rows do not overlap, nor do slices. A pitch that nothing needs is 0 or would do.
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
        return fail(ErrorCode::corrupt, "{}: slice pitch of {} bytes is no multiple of {} that holds {} rows", what,
                    pitch.slice, pitch.row, box.rows);
    return {};
}

std::string to_text(const Box& box)
{
    if (box.rows == 1 && box.slices == 1) return fmt::format("{} bytes", box.size);
    const std::string rows = fmt::format("{} rows of {} bytes", box.rows, box.size);
    return box.slices == 1 ? rows : fmt::format("{} slices of {}", box.slices, rows);
}

/// One end of a copy or fill lies in its region.
Result<void> check_end(std::string_view what, const Slot& end, const Box& box, const Graph& graph)
{
    if (end.kind != SlotKind::region || end.offset != 0)
        return fail(ErrorCode::corrupt, "{} is no region at offset 0", what);
    if (auto ok = validate_slot(end, Reach::inside, graph); !ok) return within(what, std::move(ok.error()));
    if (auto ok = check_shape(what, box); !ok) return ok;
    const Region& region = graph.regions[end.target];
    const auto bytes = extent(box);
    if (!bytes || *bytes > region.size - static_cast<std::uint64_t>(end.addend))
        return fail(ErrorCode::corrupt, "{}: {} at {} run past region '{}' of {} bytes", what, to_text(box), end.addend,
                    printable(region.name), region.size);
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

/// A driver reads what it is told is host memory with the processor: that must not be a device address.
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

/// Do two boxes of one shape and pitch, `distance` bytes apart, share a byte? REQUIRES: check_shape holds, so the distance
/// splits into slices, rows and bytes in at most two ways each.
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

/// Ends of two pitches whose extents meet are refused too: whether they share a byte would take a search.
Result<void> check_overlap(const CopyNode& copy, const Box& source, const Box& destination)
{
    if (copy.source.target != copy.destination.target) return {};
    const bool source_first = copy.source.addend <= copy.destination.addend;
    const auto [low, high] = std::minmax(copy.source.addend, copy.destination.addend);
    const auto distance = static_cast<std::uint64_t>(high - low);
    if (distance >= extent(source_first ? source : destination)) return {};
    if (source.pitch == destination.pitch && !overlap(source, distance)) return {};
    return fail(ErrorCode::corrupt, "source and destination overlap: {} at {} and at {} of one region", to_text(source),
                copy.source.addend, copy.destination.addend);
}

std::uint32_t known_flags(MemoryOperationKind kind) noexcept
{
    switch (kind) {
    case MemoryOperationKind::wait_32:
    case MemoryOperationKind::wait_64: return k_wait_comparison | k_wait_flush;
    case MemoryOperationKind::write_32:
    case MemoryOperationKind::write_64: return k_write_without_barrier;
    case MemoryOperationKind::barrier: return k_barrier_of_device;
    case MemoryOperationKind::flush_remote_writes: break;
    }
    return 0;
}

/// The driver takes aligned words only.
Result<void> check_operation(const MemoryOperation& operation, const Graph& graph)
{
    using enum MemoryOperationKind;
    const MemoryOperationKind kind = operation.kind;
    if (kind < wait_32 || kind > barrier) return fail(ErrorCode::corrupt, "kind {} is unknown", static_cast<int>(kind));
    if ((operation.flags & ~known_flags(kind)) != 0)
        return fail(ErrorCode::corrupt, "flags {:#x} are unknown to {}", operation.flags, to_string(kind));
    const std::uint32_t width = width_of(kind);
    if (width == 0 && (operation.address != Slot{} || operation.value != 0))
        return fail(ErrorCode::corrupt, "a {} has neither address nor value", to_string(kind));
    if (width == 0) return {};
    if (width == 4 && operation.value > 0xFFFF'FFFFULL)
        return fail(ErrorCode::corrupt, "value {:#x} does not fit 4 bytes", operation.value);
    if (auto ok = check_end("address", operation.address, {width, 1, 1, {}}, graph); !ok) return ok;
    if (operation.address.addend % width != 0)
        return fail(ErrorCode::corrupt, "addend {} is no multiple of the word's {} bytes", operation.address.addend,
                    width);
    return kind == write_32 || kind == write_64 ? check_writable(operation.address, graph) : Result<void>{};
}

} // namespace

Result<void> validate_operations(const MemoryOperationsNode& node, const Graph& graph, const Limits& limits)
{
    if (node.operations.empty() || node.operations.size() > limits.operations_per_node)
        return fail(ErrorCode::corrupt, "{} operations, expected 1 to {}", node.operations.size(),
                    limits.operations_per_node);
    for (std::size_t i = 0; i < node.operations.size(); ++i)
        if (auto ok = check_operation(node.operations[i], graph); !ok)
            return within(fmt::format("operation {}", i), std::move(ok.error()));
    return {};
}

Result<void> validate_copy(const CopyNode& copy, const Graph& graph)
{
    const Box source{copy.size, copy.rows, copy.slices, copy.source_pitch};
    const Box destination{copy.size, copy.rows, copy.slices, copy.destination_pitch};
    auto ok = check_end("source", copy.source, source, graph);
    if (ok) ok = check_end("destination", copy.destination, destination, graph);
    if (ok) ok = check_space("source", copy.source, copy.source_space, graph);
    if (ok) ok = check_space("destination", copy.destination, copy.destination_space, graph);
    if (ok) ok = check_overlap(copy, source, destination);
    if (ok) ok = check_writable(copy.destination, graph);
    return ok;
}

Result<void> validate_fill(const FillNode& fill, const Graph& graph)
{
    const std::size_t width = fill.pattern.size();
    if (width > 16 || !std::has_single_bit(width))
        return fail(ErrorCode::corrupt, "pattern has {} bytes, expected 1, 2, 4, 8 or 16", width);
    if (fill.size % width != 0)
        return fail(ErrorCode::corrupt, "{} bytes are no multiple of the pattern's {}", fill.size, width);
    const Box box{fill.size, fill.rows, 1, {fill.pitch, 0}};
    if (auto ok = check_end("destination", fill.destination, box, graph); !ok) return ok;
    return check_writable(fill.destination, graph);
}

} // namespace warmgraph::cachefmt
