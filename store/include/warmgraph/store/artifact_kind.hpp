// The table of the kinds of artifacts that a cache keeps. A new kind is a number and a word in base/artifact_kind.hpp, a row
// here, and a reader in bundle/kinds.cpp. docs/kinds.md describes the kinds; docs/format.md, "The bundle", has their numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/base/artifact_kind.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::store {

using warmgraph::ArtifactKind;

/// The settings and commands that choose kinds by their words.
enum class KindUse : std::uint8_t {
    switched,  ///< can be switched on and off: CacheOptions::kinds, $WARMGRAPH_KINDS
    budgeted,  ///< has counters and a part of the folder's budget: `prune`, `stats`
    cleared,   ///< can be chosen in `clear`
    bundled,   ///< can be chosen in `bundle`
    explained, ///< the cache keeps its misses: `explain`
    opaque,    ///< bytes that a program puts and gets: Cache::put_artifact
};
[[nodiscard]] constexpr std::uint8_t uses(std::initializer_list<KindUse> all) noexcept
{
    unsigned bits = 0;
    for (const KindUse use : all) bits |= 1U << static_cast<unsigned>(use);
    return static_cast<std::uint8_t>(bits);
}

struct KindRow {
    ArtifactKind kind;
    std::string_view word = to_string(kind); ///< the kind's word in options, JSON keys and labels: "entries"
    std::string_view one;                    ///< the word for one object: "entry"
    std::string_view noun;                   ///< the name of one object in a sentence: "compiled program"
    /// Words of earlier versions; the error message gives the current word
    std::array<std::string_view, 2> old_words{};
    std::string_view folder; ///< the first part of the names that this kind's objects have in a tier
    /// Suffixes of this kind's files, one for each form; empty for kinds that have no ArtifactName
    std::array<std::string_view, 2> suffixes{};
    std::uint64_t most_bytes;    ///< the largest object that is read, in bytes
    ArtifactKind part_of = kind; ///< the kind with which this kind is counted, budgeted and bundled
    std::uint8_t uses = 0;       ///< the uses as bits, from uses({...})
    bool goes_last = false;      ///< pruned last: a few kilobytes that took seconds to compute
    /// The artifacts are written only into a signed bundle, and read only from a bundle with an accepted signature
    bool needs_signed_bundle = false;

    [[nodiscard]] constexpr bool is_for(KindUse use) const noexcept { return (uses & store::uses({use})) != 0; }
    [[nodiscard]] constexpr bool has_files() const noexcept { return !suffixes.front().empty(); }
};

/// One row for each kind, in the order of the enum's values.
inline constexpr std::array<KindRow, 7> k_kinds{{
    {.kind = ArtifactKind::entries,
     .one = "entry",
     .noun = "entry",
     .old_words = {"graphs", "graph"},
     .folder = "entries",
     .most_bytes = 257ULL << 20, // envelope, header and payload
     .uses = uses({KindUse::switched, KindUse::budgeted, KindUse::cleared, KindUse::bundled, KindUse::explained})},
    {.kind = ArtifactKind::images,
     .one = "image",
     .noun = "image",
     .old_words = {"image"},
     .folder = "images",
     .most_bytes = 256ULL << 20,
     .part_of = ArtifactKind::entries,
     .uses = uses({KindUse::cleared})},
    {.kind = ArtifactKind::constants,
     .one = "constant",
     .noun = "constant",
     .old_words = {"constant"},
     .folder = "images",
     .most_bytes = 256ULL << 20,
     .part_of = ArtifactKind::entries},
    {.kind = ArtifactKind::compiled,
     .one = "compiled",
     .noun = "compiled program",
     .folder = "compiled",
     .suffixes = {".compiled"},
     .most_bytes = 256ULL << 20,
     .uses = uses({KindUse::switched, KindUse::budgeted, KindUse::cleared, KindUse::bundled, KindUse::explained})},
    {.kind = ArtifactKind::tuned,
     .one = "tuned",
     .noun = "tuned configuration",
     .old_words = {"autotune"},
     .folder = "autotune",
     .suffixes = {".best_config", ".module_configs"},
     .most_bytes = 32ULL << 20,
     .uses = uses({KindUse::switched, KindUse::budgeted, KindUse::cleared, KindUse::bundled}),
     .goes_last = true},
    {.kind = ArtifactKind::profiles,
     .one = "profile",
     .noun = "shape profile",
     .old_words = {"profile"},
     .folder = "profile",
     .suffixes = {".profile"},
     .most_bytes = 4ULL << 20,
     .uses = uses({KindUse::switched, KindUse::budgeted, KindUse::cleared, KindUse::bundled}),
     .goes_last = true},
    {.kind = ArtifactKind::torch,
     .one = "torch",
     .noun = "PyTorch artifact",
     .folder = "torch",
     .suffixes = {".mega_cache"},
     .most_bytes = (1ULL << 30) + (64ULL << 10) + 1024, // PyTorch's bytes, the facts, and the seal
     .uses = uses({KindUse::budgeted, KindUse::cleared, KindUse::bundled, KindUse::opaque}),
     .needs_signed_bundle = true},
}};

/// The form of a file with all configurations of a module (ArtifactKind::tuned).
inline constexpr std::uint8_t k_module_form = 1;

/// Returns null for a number that this version does not know.
[[nodiscard]] constexpr const KindRow* find_row(ArtifactKind kind) noexcept
{
    const auto at = static_cast<std::size_t>(kind) - 1; // 0 wraps around to a number out of range
    return at < k_kinds.size() ? &k_kinds[at] : nullptr;
}
/// REQUIRES: `kind` is a known kind.
[[nodiscard]] constexpr const KindRow& row_of(ArtifactKind kind) noexcept { return *find_row(kind); }
[[nodiscard]] constexpr bool needs_signed_bundle(ArtifactKind kind) noexcept
{
    const KindRow* const row = find_row(kind);
    return row != nullptr && row->needs_signed_bundle;
}
/// True for device code and for constants: both are stored under the digest of their bytes.
[[nodiscard]] constexpr bool is_blob(ArtifactKind kind) noexcept
{
    return kind == ArtifactKind::images || kind == ArtifactKind::constants;
}

/// The kinds for this use, in the table's order.
[[nodiscard]] std::vector<ArtifactKind> kinds_for(KindUse use);
/// The words of the kinds for this use: "entries", "compiled", ...
[[nodiscard]] std::vector<std::string> words_for(KindUse use);
/// The kinds that have a folder of their own and an ArtifactName.
[[nodiscard]] std::vector<ArtifactKind> kinds_with_files();
/// Returns the kind that has this word. The error invalid_argument names `what` (the option or variable), and lists the
/// words of this use and `others`. For a word of an earlier version the error gives the current word.
[[nodiscard]] Result<ArtifactKind> parse_kind(std::string_view what, std::string_view word, KindUse use,
                                              const std::vector<std::string>& others = {});

using KindBytes = std::map<ArtifactKind, std::uint64_t>;

class KindSet {
public:
    constexpr KindSet() noexcept = default;
    constexpr KindSet(std::initializer_list<ArtifactKind> kinds) noexcept
    {
        for (const ArtifactKind kind : kinds) insert(kind);
    }
    constexpr void insert(ArtifactKind kind) noexcept { m_bits |= bit(kind); }
    constexpr void erase(ArtifactKind kind) noexcept { m_bits &= ~bit(kind); }
    [[nodiscard]] constexpr bool contains(ArtifactKind kind) const noexcept { return (m_bits & bit(kind)) != 0; }
    [[nodiscard]] constexpr bool empty() const noexcept { return m_bits == 0; }
    constexpr bool operator==(const KindSet&) const noexcept = default;

private:
    /// Returns 0 for an unknown kind.
    [[nodiscard]] static constexpr std::uint32_t bit(ArtifactKind kind) noexcept
    {
        return find_row(kind) != nullptr ? 1U << static_cast<std::uint32_t>(kind) : 0;
    }
    std::uint32_t m_bits = 0;
};
/// Returns all kinds for this use.
[[nodiscard]] constexpr KindSet all_for(KindUse use) noexcept
{
    KindSet kinds;
    for (const KindRow& row : k_kinds)
        if (row.is_for(use)) kinds.insert(row.kind);
    return kinds;
}

} // namespace warmgraph::store
