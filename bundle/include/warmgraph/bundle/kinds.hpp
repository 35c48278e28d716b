// What a bundle may carry: the one table of kinds. A new kind is a row. docs/format.md, "The bundle", has the numbers.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "warmgraph/cachefmt/sealed.hpp"
#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/store/tier.hpp"
#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::bundle {

/// Stored: the values stay, and are only appended to.
enum class Kind : std::uint32_t {
    graph = 1,    ///< an entry
    image = 2,    ///< device code, by digest
    constant = 3, ///< contents of a graph's constant, by digest
    compiled = 4, ///< what a source was compiled to
    autotune = 5, ///< a tuned configuration, or those of a module
    profile = 6,  ///< shapes that were seen
    torch = 7,    ///< what PyTorch compiled: bytes that can run code, and so only in signed bundles
};

struct KindRow {
    Kind kind;
    std::string_view name;    ///< "graph"
    std::string_view prefix;  ///< of the names that its objects have in a tier (store::to_text)
    std::uint64_t most_bytes; ///< of one object
    /// Is this the object of that name? `corrupt` and `stale` say why not. Null: this version cannot tell, so that no
    /// object of the kind is written into a bundle or taken out of one.
    Result<void> (*verify)(const store::Name& name, ByteView bytes);
    /// How many of the object's first bytes stand in the index: its facts. Null: none.
    Result<std::uint64_t> (*head_extent)(ByteView object) = nullptr;
    /// Of the head: has it an accepted signature of its own, where that is required? Null: what is in it is covered
    /// otherwise (an entry by its header, an image by its name), or by the bundle's signature alone.
    Result<void> (*check_trust)(ByteView head, const cachefmt::Trust& trust) = nullptr;
    /// What it would take to make it again, as it says itself. Null: it does not say.
    double (*seconds)(const store::Name& name, ByteView object) = nullptr;
    /// How its files are sealed, and signed each by itself. Null: an entry is signed in its own way, and the rest is not.
    const cachefmt::SealedKind* sealed = nullptr;
};

/// In the order of their numbers.
[[nodiscard]] std::span<const KindRow> kinds() noexcept;
/// Null for a number that this version does not know.
[[nodiscard]] const KindRow* row_of(Kind kind) noexcept;
/// Gives the row of the artifact's kind.
[[nodiscard]] const KindRow& row_of(const store::ArtifactName& name) noexcept;
/// How `check` and `repair` of a folder read it: as it is read out of a bundle (store::ArtifactReaders).
[[nodiscard]] store::ArtifactReader reader_of(const store::ArtifactName& name);
/// Is it written only into a bundle that is signed, and taken only from one that an accepted key signed?
[[nodiscard]] constexpr bool needs_signed_bundle(Kind kind) noexcept { return kind == Kind::torch; }
/// "graph"; "kind 9" for one that is not known.
[[nodiscard]] std::string name_of(Kind kind);

/// KindRow::seconds, 0 where it does not say.
[[nodiscard]] double seconds_of(Kind kind, const store::Name& name, ByteView object);

/// An entry's device code, or the contents of one of its constants: carried with the entries that need it.
[[nodiscard]] inline bool is_blob(Kind kind) noexcept { return kind == Kind::image || kind == Kind::constant; }

/// The tier's name for a member of this kind: nullopt where the text is not one that a tier makes (`..`, an absolute
/// path and the like), or is of another kind.
[[nodiscard]] std::optional<store::Name> tier_name(Kind kind, std::string_view name);
/// May a member of any kind be called so? Parts of [A-Za-z0-9._-] that do not begin with '.' or '-', slashes between.
[[nodiscard]] bool is_member_name(std::string_view name) noexcept;

} // namespace warmgraph::bundle
