#include "warmgraph/bundle/kinds.hpp"

#include <algorithm>
#include <array>

#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::bundle {
namespace {

constexpr std::size_t k_name_bytes = 1024;

Result<void> verify_graph(const store::Name& name, ByteView bytes)
{
    const auto& key = std::get<store::EntryKey>(name);
    const auto entry = cachefmt::decode(bytes, key);
    if (!entry) return std::unexpected(entry.error());
    if (entry->header.kind != cachefmt::EntryKind::graph)
        return fail(ErrorCode::corrupt, "it is a tombstone, expected a graph: a bundle carries none");
    return {};
}

Result<void> verify_blob(const store::Name& name, ByteView bytes)
{
    const Digest& expected = std::get<store::ImageName>(name).digest;
    if (const Digest is = sha256(bytes); is != expected)
        return fail(ErrorCode::corrupt, "its SHA-256 is {}, its name says {}", to_hex(is), to_hex(expected));
    return {};
}

Result<void> verify_torch(const store::Name& name, ByteView bytes)
{
    const auto label = store::inspect_torch(bytes);
    if (!label) return std::unexpected(label.error());
    if (store::torch_name(label->facts) != name)
        return fail(ErrorCode::corrupt, "it is stored under the name of other facts");
    return {};
}

constexpr std::uint64_t k_most_blob = 256ULL << 20;  // as the store takes
constexpr std::uint64_t k_most_graph = 257ULL << 20; // envelope, header and payload
constexpr std::uint64_t k_most_record = 16ULL << 20;

constexpr std::array<KindRow, 7> k_kinds{{
    {Kind::graph, "graph", "entries/", k_most_graph, verify_graph},
    {Kind::image, "image", "images/", k_most_blob, verify_blob},
    {Kind::constant, "constant", "images/", k_most_blob, verify_blob},
    {Kind::compiled, "compiled", "compiled/", k_most_record, nullptr},
    {Kind::autotune, "autotune", "autotune/", k_most_record, nullptr},
    {Kind::profile, "profile", "profile/", k_most_record, nullptr},
    {Kind::torch, "torch", "torch/", store::k_torch_cap, verify_torch},
}};

bool is_name_byte(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

} // namespace

std::span<const KindRow> kinds() noexcept { return k_kinds; }

const KindRow* row_of(Kind kind) noexcept
{
    const auto row = std::ranges::find(k_kinds, kind, &KindRow::kind);
    return row == k_kinds.end() ? nullptr : &*row;
}

std::string name_of(Kind kind)
{
    const KindRow* const row = row_of(kind);
    return row != nullptr ? std::string(row->name) : fmt::format("kind {}", static_cast<std::uint32_t>(kind));
}

std::optional<store::Name> tier_name(Kind kind, std::string_view name)
{
    const KindRow* const row = row_of(kind);
    if (row == nullptr || !name.starts_with(row->prefix)) return std::nullopt;
    return store::name_from_text(name);
}

bool is_member_name(std::string_view name) noexcept
{
    if (name.size() > k_name_bytes) return false;
    for (;;) {
        const std::size_t end = std::min(name.find('/'), name.size());
        const std::string_view part = name.substr(0, end);
        if (part.empty() || part.front() == '.' || part.front() == '-' || !std::ranges::all_of(part, is_name_byte))
            return false;
        if (end == name.size()) return true;
        name.remove_prefix(end + 1);
    }
}

} // namespace warmgraph::bundle
