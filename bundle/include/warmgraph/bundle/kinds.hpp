// How this version reads each kind of artifact: in a bundle, and where a folder is checked. What else there is of a kind
// stands in warmgraph/store/artifact_kind.hpp. docs/format.md, "The bundle", has the numbers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/cachefmt/sealed.hpp"
#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/store/artifact_kind.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::bundle {

using store::ArtifactKind;
using store::is_blob;
using store::needs_signed_bundle;

struct KindReader {
    ArtifactKind kind;
    /// Is this the object of that name? `corrupt` and `stale` say why not.
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

/// Null for a number that this version does not know.
[[nodiscard]] const KindReader* find_reader(ArtifactKind kind) noexcept;
/// REQUIRES: it is known.
[[nodiscard]] const KindReader& reader_of(ArtifactKind kind) noexcept;
/// store::ArtifactVerifier: how `check` and `repair` of a folder read it, as it is read out of a bundle.
[[nodiscard]] Result<void> verify_artifact(const store::ArtifactName& name, ByteView bytes);
/// "entries"; "kind 9" for one that is not known.
[[nodiscard]] std::string name_of(ArtifactKind kind);

/// KindReader::seconds, 0 where it does not say.
[[nodiscard]] double seconds_of(ArtifactKind kind, const store::Name& name, ByteView object);

/// The tier's name for a member of this kind: nullopt where the text is not one that a tier makes (`..`, an absolute
/// path and the like), or is of another kind.
[[nodiscard]] std::optional<store::Name> tier_name(ArtifactKind kind, std::string_view name);
/// May a member of any kind be called so? Parts of [A-Za-z0-9._-] that do not begin with '.' or '-', slashes between.
[[nodiscard]] bool is_member_name(std::string_view name) noexcept;

} // namespace warmgraph::bundle
