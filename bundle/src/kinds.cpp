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

Result<void> verify_entry(const store::Name& name, ByteView bytes)
{
    const auto& key = std::get<store::EntryKey>(name);
    const auto entry = cachefmt::decode(bytes, key);
    if (!entry) return std::unexpected(entry.error());
    if (entry->header.kind != cachefmt::EntryKind::graph)
        return fail(ErrorCode::corrupt,
                    "it is the record of a refusal (a tombstone), expected a graph: bundles contain no tombstones");
    return {};
}

Result<void> verify_blob(const store::Name& name, ByteView bytes)
{
    const Digest& expected = std::get<store::ImageName>(name).digest;
    if (const Digest is = sha256(bytes); is != expected)
        return fail(ErrorCode::corrupt, "its SHA-256 is {}, its name says {}", to_hex(is), to_hex(expected));
    return {};
}

Result<std::uint64_t> entry_head(ByteView object) { return cachefmt::header_extent(object); }

/// Checks that the bytes were read without an error and have the key in `name`.
template <class T, class KeyOf>
Result<void> held_to(const store::Name& name, const Result<T>& read, const KeyOf& key_of)
{
    if (!read) return std::unexpected(read.error());
    const Digest is = key_of(*read), expected = std::get<store::ArtifactName>(name).digest;
    if (is != expected)
        return fail(ErrorCode::corrupt, "it belongs to {}, but its name says {}", to_hex(is), to_hex(expected));
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
    return {}; // only trust is checked; verify() reports other errors
}

double seconds_of_compiled(const store::Name&, ByteView object)
{
    const auto facts = precompile::decode_facts(object);
    return facts ? facts->compile_ms / k_ms_of_second : 0;
}

bool is_module(const store::Name& name) { return std::get<store::ArtifactName>(name).form == store::k_module_form; }

Result<void> verify_tuned(const store::Name& name, ByteView bytes)
{
    const auto key_of = [](const auto& is) { return is.key; };
    return is_module(name) ? held_to(name, autotune::decode_module(bytes), key_of)
                           : held_to(name, autotune::decode(bytes), key_of);
}

/// Returns the time of tuning. 0 for a module's file, because each of its configurations also has its own file, which
/// counts.
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
    if (store::Name{store::torch_name(label->facts)} != name)
        return fail(ErrorCode::corrupt, "it is stored under a name that does not match its facts");
    return {};
}

/// The readers, in the order of the kinds.
constexpr std::array<KindReader, store::k_kinds.size()> k_readers{{
    {.kind = ArtifactKind::entries, .verify = verify_entry, .head_extent = entry_head},
    {.kind = ArtifactKind::images, .verify = verify_blob},
    {.kind = ArtifactKind::constants, .verify = verify_blob},
    {.kind = ArtifactKind::compiled,
     .verify = verify_compiled,
     .head_extent = precompile::facts_extent,
     .check_trust = check_compiled_trust,
     .seconds = seconds_of_compiled,
     .sealed = &precompile::k_sealed_program},
    {.kind = ArtifactKind::tuned, .verify = verify_tuned, .seconds = seconds_of_tuned},
    {.kind = ArtifactKind::profiles, .verify = verify_profile},
    {.kind = ArtifactKind::torch, .verify = verify_torch, .sealed = &store::k_sealed_torch},
}};
static_assert(std::ranges::equal(k_readers, store::k_kinds, {}, &KindReader::kind, &store::KindRow::kind));

bool is_name_byte(char c) noexcept
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

} // namespace

const KindReader* find_reader(ArtifactKind kind) noexcept
{
    const auto reader = std::ranges::find(k_readers, kind, &KindReader::kind);
    return reader == k_readers.end() ? nullptr : &*reader;
}

const KindReader& reader_of(ArtifactKind kind) noexcept { return *find_reader(kind); }

Result<void> verify_artifact(const store::ArtifactName& name, ByteView bytes)
{
    return reader_of(name.kind).verify(name, bytes);
}

std::string name_of(ArtifactKind kind)
{
    return store::find_row(kind) != nullptr ? std::string(to_string(kind))
                                            : fmt::format("kind {}", static_cast<std::uint32_t>(kind));
}

double seconds_of(ArtifactKind kind, const store::Name& name, ByteView object)
{
    const KindReader* const reader = find_reader(kind);
    return reader != nullptr && reader->seconds != nullptr ? reader->seconds(name, object) : 0;
}

std::optional<store::Name> tier_name(ArtifactKind kind, std::string_view name)
{
    const store::KindRow* const row = store::find_row(kind);
    if (row == nullptr || !name.starts_with(store::prefix_of({kind}))) return std::nullopt;
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
