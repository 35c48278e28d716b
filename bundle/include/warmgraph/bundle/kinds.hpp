// Reads and verifies each kind of artifact, in a bundle and in a folder that is checked. Other properties of the kinds
// are in warmgraph/store/artifact_kind.hpp, their numbers in docs/format.md, "The bundle".
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
    /// Checks that the bytes are the object of this name. Fails with `corrupt` or `stale` if they are not.
    Result<void> (*verify)(const store::Name& name, ByteView bytes);
    /// Returns how many of the object's first bytes, its head, are in the index: the bytes with the object's facts.
    /// Null: this kind has no head.
    Result<std::uint64_t> (*head_extent)(ByteView object) = nullptr;
    /// Checks the signature in the head if a signature is required. Null: another signature covers the object (an
    /// entry's header, an image's name in an entry, or the bundle's signature).
    Result<void> (*check_trust)(ByteView head, const cachefmt::Trust& trust) = nullptr;
    /// Returns the time in seconds that making the object again would take, as the object states it. Null: objects of
    /// this kind do not state it.
    double (*seconds)(const store::Name& name, ByteView object) = nullptr;
    /// How this kind's files are sealed and signed. Null: files of this kind are not sealed (entries have their own
    /// signature).
    const cachefmt::SealedKind* sealed = nullptr;
};

/// Returns the kind's reader; null for a kind that this version does not know.
[[nodiscard]] const KindReader* find_reader(ArtifactKind kind) noexcept;
/// Returns the kind's reader. REQUIRES: `kind` is a known kind.
[[nodiscard]] const KindReader& reader_of(ArtifactKind kind) noexcept;
/// Verifies an artifact; a store::ArtifactVerifier. So `check` and `repair` read a folder's artifacts in the same way
/// as a bundle does.
[[nodiscard]] Result<void> verify_artifact(const store::ArtifactName& name, ByteView bytes);
/// Returns the kind's name, such as "entries"; "kind 9" for an unknown kind.
[[nodiscard]] std::string name_of(ArtifactKind kind);

/// Returns the result of KindReader::seconds, or 0 if objects of this kind do not state it.
[[nodiscard]] double seconds_of(ArtifactKind kind, const store::Name& name, ByteView object);

/// Returns the name in a tier for a member of this kind. nullopt: no tier makes such a name (`..`, an absolute path and
/// the like), or the name belongs to another kind.
[[nodiscard]] std::optional<store::Name> tier_name(ArtifactKind kind, std::string_view name);
/// Whether a member may have this name: parts of [A-Za-z0-9._-] that do not begin with '.' or '-', between slashes.
[[nodiscard]] bool is_member_name(std::string_view name) noexcept;

} // namespace warmgraph::bundle
