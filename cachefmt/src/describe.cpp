#include "describe.hpp"

#include <bit>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nodes/node_format.hpp"

namespace warmgraph::cachefmt {
namespace {

std::string signed_text(std::int64_t addend)
{
    if (addend == 0) return {};
    const auto magnitude = addend < 0 ? 0 - static_cast<std::uint64_t>(addend) : static_cast<std::uint64_t>(addend);
    return fmt::format(" {} {}", addend < 0 ? '-' : '+', magnitude);
}

} // namespace

std::string_view to_string(RegionKind kind) noexcept
{
    switch (kind) {
    case RegionKind::input: return "input";
    case RegionKind::output: return "output";
    case RegionKind::state: return "state";
    case RegionKind::weights: return "weights";
    case RegionKind::arena: return "arena";
    case RegionKind::constant: return "constant";
    }
    return "unknown";
}

std::string_view to_string(EntryKind kind) noexcept
{
    switch (kind) {
    case EntryKind::graph: return "graph";
    case EntryKind::tombstone: return "tombstone";
    }
    return "unknown";
}

std::string_view to_string(ParamKind kind) noexcept
{
    switch (kind) {
    case ParamKind::value: return "value";
    case ParamKind::memory: return "memory";
    case ParamKind::local: return "local";
    }
    return "unknown";
}

std::string_view to_string(MemorySpace space) noexcept
{
    switch (space) {
    case MemorySpace::device: return "device";
    case MemorySpace::host: return "host";
    }
    return "unknown";
}

std::string_view node_kind(const Node& node) noexcept { return format_of(node).kind(node); }

std::string to_text(const Dim3& dim) { return fmt::format("{}", fmt::join(dim, ",")); }

std::string to_text(const Slot& slot, const Graph& graph)
{
    const bool region = slot.kind == SlotKind::region;
    const std::size_t count = region ? graph.regions.size() : graph.scalars.size();
    if (slot.target >= count)
        return fmt::format("{} {}{}", region ? "region" : "scalar", slot.target, signed_text(slot.addend));
    const std::string& name = region ? graph.regions[slot.target].name : graph.scalars[slot.target].name;
    return printable(name) + signed_text(slot.addend);
}

std::string to_text(const EdgeData& data)
{
    if (data == EdgeData{}) return "plain";
    std::string text;
    const auto word = [&](const std::string& more) { text += (text.empty() ? "" : " ") + more; };
    if (data.type == 1) word("programmatic");
    if (data.type > 1) word(fmt::format("type {}", data.type));
    if (data.from_port == 2) word("from launch");
    if (data.from_port > 2 || (data.from_port == 1 && data.type != 1))
        word(fmt::format("from port {}", data.from_port));
    if (data.type == 1 && data.from_port == 0) word("from port 0");
    if (data.to_port != 0) word(fmt::format("to port {}", data.to_port));
    return text;
}

std::string node_name(const Node& node, std::size_t index)
{
    return fmt::format("{} (node {})", format_of(node).name(node), index);
}

std::string hex(ByteView bytes, std::size_t most)
{
    std::string text;
    for (const std::byte byte : bytes.first(std::min(most, bytes.size())))
        text += fmt::format("{:02x}", std::to_integer<unsigned>(byte));
    if (bytes.size() > most) text += "...";
    return text;
}

std::string human_size(std::uint64_t bytes)
{
    if (bytes < 1024) return fmt::format("{} B", bytes);
    static constexpr const char* k_units[] = {"KB", "MB", "GB", "TB", "PB", "EB"};
    double size = static_cast<double>(bytes) / 1024;
    std::size_t unit = 0;
    for (; size >= 1023.5 && unit + 1 < std::size(k_units); size /= 1024) ++unit;
    return size < 9.95 ? fmt::format("{:.1f} {}", size, k_units[unit]) : fmt::format("{:.0f} {}", size, k_units[unit]);
}

std::string value_text(const ValueSpec& value)
{
    const std::uint64_t bits = value.bits;
    switch (value.dtype) {
    case DType::boolean: return bits == 0 ? "false" : "true";
    case DType::u8:
    case DType::u16:
    case DType::u32:
    case DType::u64: return fmt::format("{}", bits);
    case DType::i8: return fmt::format("{}", static_cast<int>(static_cast<std::int8_t>(bits)));
    case DType::i16: return fmt::format("{}", static_cast<std::int16_t>(bits));
    case DType::i32: return fmt::format("{}", static_cast<std::int32_t>(bits));
    case DType::i64: return fmt::format("{}", static_cast<std::int64_t>(bits));
    case DType::f32: return fmt::format("{}", std::bit_cast<float>(static_cast<std::uint32_t>(bits)));
    case DType::f64: return fmt::format("{}", std::bit_cast<double>(bits));
    case DType::f16:
    case DType::bf16: break;
    }
    return fmt::format("{:#06x}", bits);
}

} // namespace warmgraph::cachefmt
