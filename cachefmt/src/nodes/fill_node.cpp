// Fills of memory with a pattern.
#include <bit>

#include "describe.hpp"
#include "digest_put.hpp"
#include "flat_parse.hpp"
#include "heap_size.hpp"
#include "nodes/box.hpp"
#include "nodes/node_format_of.hpp"

namespace warmgraph::cachefmt {
namespace {

struct FillFormat {
    using Work = FillNode;
    using Flat = flat::Fill;

    static std::string_view kind(const FillNode&) noexcept { return "fill"; }
    static void digest(Sha256& hash, const FillNode& fill);
    static void compare(const NodeDifference& out, const FillNode& a, const FillNode& b);
    static Result<void> validate(const FillNode& fill, const Graph& graph, const Limits& limits);
    static std::uint64_t footprint(const FillNode& fill) noexcept { return heap_size(fill.pattern.size()); }

    static flatbuffers::Offset<flat::Fill> to_flat(FlatBuilder& builder, const FillNode& fill);
    static Result<void> check_flat(const flat::Fill&, const Limits&) { return {}; }
    static std::uint64_t flat_footprint(const flat::Fill& fill) { return heap_size(count(fill.pattern())); }
    static FillNode from_flat(const flat::Fill& fill)
    {
        return {to_slot(*fill.destination()), to_bytes(fill.pattern()), fill.size(), fill.rows(), fill.pitch()};
    }

    static void json(Json& out, const FillNode& fill, const Graph& graph);
    static NodeRow row(const FillNode& fill, const Graph& graph);
    static std::vector<std::string> label(const FillNode& fill, const Graph& graph)
    {
        return {fmt::format("fill {}", box_size(box_of(fill))), to_text(fill.destination, graph)};
    }

private:
    static Box box_of(const FillNode& fill) { return {fill.size, fill.rows, 1, {fill.pitch, 0}}; }
};

void FillFormat::digest(Sha256& hash, const FillNode& fill)
{
    put(hash, fill.destination);
    put(hash, fill.pattern);
    put(hash, fill.size);
    put(hash, fill.rows);
    put(hash, fill.pitch);
}

void FillFormat::compare(const NodeDifference& out, const FillNode& a, const FillNode& b)
{
    out.part("destination").slot(a.destination, b.destination);
    out.bytes("pattern", a.pattern, b.pattern);
    out.number("size", a.size, b.size);
    out.number("rows", a.rows, b.rows);
    out.number("pitch", a.pitch, b.pitch);
}

Result<void> FillFormat::validate(const FillNode& fill, const Graph& graph, const Limits&)
{
    const std::size_t width = fill.pattern.size();
    if (width > 16 || !std::has_single_bit(width))
        return fail(ErrorCode::corrupt, "pattern has {} bytes, expected 1, 2, 4, 8 or 16", width);
    if (fill.size % width != 0)
        return fail(ErrorCode::corrupt, "{} bytes are not a multiple of the pattern's {} bytes", fill.size, width);
    if (auto ok = check_end("destination", fill.destination, box_of(fill), graph); !ok) return ok;
    return check_writable(fill.destination, graph);
}

flatbuffers::Offset<flat::Fill> FillFormat::to_flat(FlatBuilder& builder, const FillNode& fill)
{
    const auto destination = write(builder, fill.destination);
    // The schema requires a pattern, so an empty one is written too.
    const auto pattern =
        builder.CreateVector(reinterpret_cast<const std::uint8_t*>(fill.pattern.data()), fill.pattern.size());
    return flat::CreateFill(builder, destination, pattern, fill.size, fill.rows, fill.pitch);
}

void FillFormat::json(Json& out, const FillNode& fill, const Graph& graph)
{
    set_slot(out, "destination", fill.destination, graph);
    set_text(out, "pattern", hex(fill.pattern, fill.pattern.size()));
    set_number(out, "size", fill.size);
    set_number(out, "rows", fill.rows);
    set_number(out, "pitch", fill.pitch);
}

NodeRow FillFormat::row(const FillNode& fill, const Graph& graph)
{
    const Box box = box_of(fill);
    return {.parameters =
                fmt::format("{} of {} with {}", box_size(box),
                            end_text(fill.destination, box.pitch, MemorySpace::device, graph), hex(fill.pattern))};
}

} // namespace

const NodeFormat& format_of(std::type_identity<FillNode>) noexcept
{
    static const NodeFormatOf<FillFormat> format;
    return format;
}

} // namespace warmgraph::cachefmt
