#include "describe.hpp"

#include <bit>
#include <cmath>
#include <cstdint>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "nodes/node_format.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::cachefmt {
namespace {

std::string signed_text(std::int64_t addend)
{
    if (addend == 0) return {};
    const auto magnitude = addend < 0 ? 0 - static_cast<std::uint64_t>(addend) : static_cast<std::uint64_t>(addend);
    return fmt::format(" {} {}", addend < 0 ? '-' : '+', magnitude);
}

} // namespace

std::string_view compared_text(const Fact& fact) noexcept
{
    if (fact.role == Role::advisory) return "never";
    return fact::has_order(fact.name) ? "same or newer" : "equal";
}

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

std::optional<std::uint64_t> number_in(ByteView bytes) noexcept
{
    if (!std::has_single_bit(bytes.size()) || bytes.size() > sizeof(std::uint64_t)) return std::nullopt;
    std::uint64_t number = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) number |= std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return number;
}

namespace {

/// Reads the bits as a float or double; returns "" unless the result looks like a number that a person wrote.
std::string as_float(std::uint64_t bits, std::size_t size)
{
    constexpr double k_small = 1e-9, k_large = 1e12;
    const double number = size == sizeof(float)    ? std::bit_cast<float>(static_cast<std::uint32_t>(bits))
                          : size == sizeof(double) ? std::bit_cast<double>(bits)
                                                   : 0;
    const bool is_likely = std::abs(number) >= k_small && std::abs(number) <= k_large;
    if (!is_likely) return {};
    return size == sizeof(float) ? fmt::format(", {} as a float", static_cast<float>(number))
                                 : fmt::format(", {} as a double", number);
}

} // namespace

std::string word_text(ByteView bytes)
{
    const auto number = number_in(bytes);
    if (!number) return fmt::format("{} B {}", bytes.size(), hex(bytes, 8));
    constexpr std::int64_t k_most = 1 << 24; // larger numbers are more likely addresses, floats or bit sets
    const int shift = 64 - static_cast<int>(8 * bytes.size());
    const std::int64_t value = static_cast<std::int64_t>(*number << shift) >> shift;
    if (value > -k_most && value < k_most) return fmt::format("{} ({} B)", value, bytes.size());
    return fmt::format("{:#x} ({} B{})", *number, bytes.size(), as_float(*number, bytes.size()));
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
