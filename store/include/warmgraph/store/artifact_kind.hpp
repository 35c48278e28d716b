// The kinds of what a cache keeps: the one table of them. A new kind is a number and a word in base/artifact_kind.hpp, a row
// here, and its reader in bundle/kinds.cpp.
// docs/kinds.md, and of the numbers docs/format.md, "The bundle".
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

/// Where a kind is chosen by its word.
enum class KindUse : std::uint8_t {
    switched,  ///< on or off: CacheOptions::kinds, $WARMGRAPH_KINDS
    budgeted,  ///< a part of what the folder may hold, and its counters: `prune`, `stats`
    cleared,   ///< `clear`
    bundled,   ///< `bundle`
    explained, ///< its misses are kept: `explain`
};
[[nodiscard]] constexpr std::uint8_t uses(std::initializer_list<KindUse> all) noexcept
{
    unsigned bits = 0;
    for (const KindUse use : all) bits |= 1U << static_cast<unsigned>(use);
    return static_cast<std::uint8_t>(bits);
}

struct KindRow {
    ArtifactKind kind;
    std::string_view word = to_string(kind);     ///< in every option, JSON key and label: "entries"
    std::string_view one;                        ///< the same of one of them: "entry"
    std::string_view noun;                       ///< of one, in sentences: "compiled program"
    std::array<std::string_view, 2> old_words{}; ///< of earlier versions, for the message that names the right one
    std::string_view folder;                     ///< its names in a tier begin so
    std::array<std::string_view, 2> suffixes{};  ///< of its files: one for each form. None: it is no ArtifactName
    std::uint64_t most_bytes;                    ///< of one object; more is not read
    ArtifactKind part_of = kind;                 ///< with which it is counted, budgeted and carried
    std::uint8_t uses = 0;                       ///< uses({...})
    bool goes_last = false;                      ///< where room is made: a few kilobytes that took seconds to find
    bool needs_signed_bundle = false; ///< written only into one, and taken only from one that an accepted key signed

    [[nodiscard]] constexpr bool is_for(KindUse use) const noexcept { return (uses & store::uses({use})) != 0; }
    [[nodiscard]] constexpr bool has_files() const noexcept { return !suffixes.front().empty(); }
};

/// In the order of their numbers.
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
     .most_bytes = (1ULL << 30) + (64ULL << 10) + 1024, // PyTorch's bytes, its facts, what seals them
     .uses = uses({KindUse::budgeted, KindUse::cleared, KindUse::bundled}),
     .needs_signed_bundle = true},
}};

/// Of ArtifactKind::tuned, the form of a file with all configurations of a module.
inline constexpr std::uint8_t k_module_form = 1;

/// Null for a number that this version does not know.
[[nodiscard]] constexpr const KindRow* find_row(ArtifactKind kind) noexcept
{
    const auto at = static_cast<std::size_t>(kind) - 1; // 0 wraps, and is no kind either
    return at < k_kinds.size() ? &k_kinds[at] : nullptr;
}
/// REQUIRES: it is known.
[[nodiscard]] constexpr const KindRow& row_of(ArtifactKind kind) noexcept { return *find_row(kind); }
[[nodiscard]] constexpr bool needs_signed_bundle(ArtifactKind kind) noexcept
{
    const KindRow* const row = find_row(kind);
    return row != nullptr && row->needs_signed_bundle;
}
/// An entry's device code, or the contents of one of its constants: both lie under the digest of their bytes.
[[nodiscard]] constexpr bool is_blob(ArtifactKind kind) noexcept
{
    return kind == ArtifactKind::images || kind == ArtifactKind::constants;
}

/// In the table's order.
[[nodiscard]] std::vector<ArtifactKind> kinds_for(KindUse use);
/// Their words: "entries", "compiled", ...
[[nodiscard]] std::vector<std::string> words_for(KindUse use);
/// Those that lie in a folder of their own, as ArtifactName names them.
[[nodiscard]] std::vector<ArtifactKind> kinds_with_files();
/// The kind of this word. invalid_argument names `what`, where the word stood, and all words that may stand there: those of
/// the use, and `others`; of a word of earlier versions the one that it has now.
[[nodiscard]] Result<ArtifactKind> parse_kind(std::string_view what, std::string_view word, KindUse use,
                                              const std::vector<std::string>& others = {});

/// Bytes of some kinds.
using KindBytes = std::map<ArtifactKind, std::uint64_t>;

/// Some of the kinds.
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
    /// 0 of what is no known kind.
    [[nodiscard]] static constexpr std::uint32_t bit(ArtifactKind kind) noexcept
    {
        return find_row(kind) != nullptr ? 1U << static_cast<std::uint32_t>(kind) : 0;
    }
    std::uint32_t m_bits = 0;
};
/// All that there are for this use.
[[nodiscard]] constexpr KindSet all_for(KindUse use) noexcept
{
    KindSet kinds;
    for (const KindRow& row : k_kinds)
        if (row.is_for(use)) kinds.insert(row.kind);
    return kinds;
}

} // namespace warmgraph::store
