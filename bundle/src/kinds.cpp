#include "warmgraph/bundle/kinds.hpp"

#include <algorithm>
#include <array>

#include "warmgraph/autotune/module_configs.hpp"
#include "warmgraph/cachefmt/codec.hpp"
#include "warmgraph/precompile/compiled_program.hpp"
#include "warmgraph/profile/profile_file.hpp"
#include "warmgraph/store/torch_artifacts.hpp"

namespace warmgraph::bundle {
namespace {

constexpr std::size_t k_name_bytes = 1024;
constexpr double k_ms_of_second = 1000;

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

Result<std::uint64_t> graph_head(ByteView object) { return cachefmt::header_extent(object); }

/// `key_of` gives the key of what was read.
template <class T, class KeyOf>
Result<void> held_to(const store::Name& name, const Result<T>& read, const KeyOf& key_of)
{
    if (!read) return std::unexpected(read.error());
    const Digest is = key_of(*read), expected = std::get<store::ArtifactName>(name).digest;
    if (is != expected) return fail(ErrorCode::corrupt, "it is of {}, its name says {}", to_hex(is), to_hex(expected));
    return {};
}

Result<void> verify_compiled(const store::Name& name, ByteView bytes)
{
    return held_to(name, precompile::decode(bytes), [](const auto& is) { return precompile::key_of(is.ingredients); });
}

Result<void> check_compiled_trust(ByteView head, const cachefmt::Trust& trust)
{
    const auto facts = precompile::decode_facts(head, trust);
    if (!facts && facts.error().code == ErrorCode::untrusted) return std::unexpected(facts.error());
    return {}; // whatever else is wrong with it is for verify()
}

double seconds_of_compiled(const store::Name&, ByteView object)
{
    const auto facts = precompile::decode_facts(object);
    return facts ? facts->compile_ms / k_ms_of_second : 0;
}

bool is_module(const store::Name& name)
{
    return std::get<store::ArtifactName>(name).kind == store::ArtifactKind::module_configs;
}

Result<void> verify_tuned(const store::Name& name, ByteView bytes)
{
    const auto key_of = [](const auto& is) { return is.key; };
    return is_module(name) ? held_to(name, autotune::decode_module(bytes), key_of)
                           : held_to(name, autotune::decode(bytes), key_of);
}

/// Those of a module are in files of their own too.
double seconds_of_tuned(const store::Name& name, ByteView object)
{
    const auto best = is_module(name) ? Result<autotune::BestConfig>{} : autotune::decode(object);
    return best ? best->took_ms / k_ms_of_second : 0;
}

Result<void> verify_profile(const store::Name& name, ByteView bytes)
{
    return held_to(name, profile::decode(bytes), [](const auto& is) { return is.key; });
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

constexpr std::array<KindRow, 7> k_kinds{{
    {.kind = Kind::graph,
     .name = "graph",
     .prefix = "entries/",
     .most_bytes = k_most_graph,
     .verify = verify_graph,
     .head_extent = graph_head},
    {.kind = Kind::image, .name = "image", .prefix = "images/", .most_bytes = k_most_blob, .verify = verify_blob},
    {.kind = Kind::constant, .name = "constant", .prefix = "images/", .most_bytes = k_most_blob, .verify = verify_blob},
    {.kind = Kind::compiled,
     .name = "compiled",
     .prefix = "compiled/",
     .most_bytes = precompile::k_compiled_cap,
     .verify = verify_compiled,
     .head_extent = precompile::facts_extent,
     .check_trust = check_compiled_trust,
     .seconds = seconds_of_compiled,
     .sealed = &precompile::k_sealed_program},
    {.kind = Kind::autotune,
     .name = "autotune",
     .prefix = "autotune/",
     .most_bytes = autotune::k_module_cap,
     .verify = verify_tuned,
     .seconds = seconds_of_tuned},
    {.kind = Kind::profile,
     .name = "profile",
     .prefix = "profile/",
     .most_bytes = profile::k_profile_cap,
     .verify = verify_profile},
    {.kind = Kind::torch,
     .name = "torch",
     .prefix = "torch/",
     .most_bytes = store::k_torch_cap,
     .verify = verify_torch,
     .sealed = &store::k_sealed_torch},
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

const KindRow& row_of(const store::ArtifactName& name) noexcept
{
    const std::string_view folder = store::folder_of(name.kind);
    return *std::ranges::find_if(k_kinds, [&](const KindRow& row) {
        return row.prefix.starts_with(folder) && row.prefix.size() == folder.size() + 1;
    });
}

store::ArtifactReader reader_of(const store::ArtifactName& name)
{
    const KindRow& row = row_of(name);
    return {row.most_bytes, row.verify};
}

std::string name_of(Kind kind)
{
    const KindRow* const row = row_of(kind);
    return row != nullptr ? std::string(row->name) : fmt::format("kind {}", static_cast<std::uint32_t>(kind));
}

double seconds_of(Kind kind, const store::Name& name, ByteView object)
{
    const KindRow* const row = row_of(kind);
    return row != nullptr && row->seconds != nullptr ? row->seconds(name, object) : 0;
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
