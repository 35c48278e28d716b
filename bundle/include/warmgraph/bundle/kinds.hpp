// Reads and verifies each kind of artifact, in a bundle and in a folder that is checked. The kinds' other properties:
// warmgraph/store/artifact_kind.hpp. Their numbers: docs/format.md, "The bundle".
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

struct KindReader {
    ArtifactKind kind;
    /// Checks that the bytes are the object of this name. `corrupt` and `stale` say why not.
    Result<void> (*verify)(const store::Name& name, ByteView bytes);
    /// The number of first bytes that the index holds, i.e. the object's facts. Null: this kind has no head.
    Result<std::uint64_t> (*head_extent)(ByteView object) = nullptr;
    /// Checks the signature in the head, when one is required. Null: another signature covers the object (an entry's
    /// header, an image's name in an entry, or the bundle's signature).
    Result<void> (*check_trust)(ByteView head, const cachefmt::Trust& trust) = nullptr;
    /// The time that making the object again would take, from the object itself. Null: the object does not have it.
    double (*seconds)(const store::Name& name, ByteView object) = nullptr;
    /// How this kind's files are sealed and signed. Null: not sealed (entries have their own signature).
    const cachefmt::SealedKind* sealed = nullptr;
};

/// Returns null for a number that this version does not know.
[[nodiscard]] const KindReader* find_reader(ArtifactKind kind) noexcept;
/// REQUIRES: `kind` is a known kind.
[[nodiscard]] const KindReader& reader_of(ArtifactKind kind) noexcept;
/// A store::ArtifactVerifier: `check` and `repair` of a folder read artifacts in the same way as a bundle does.
[[nodiscard]] Result<void> verify_artifact(const store::ArtifactName& name, ByteView bytes);
/// "entries"; "kind 9" for an unknown kind.
[[nodiscard]] std::string name_of(ArtifactKind kind);

/// KindReader::seconds, or 0 when the object does not have it.
[[nodiscard]] double seconds_of(ArtifactKind kind, const store::Name& name, ByteView object);

/// The tier's name for a member of this kind. nullopt when the text is not a name that a tier makes (`..`, an absolute
/// path and the like), or belongs to another kind.
[[nodiscard]] std::optional<store::Name> tier_name(ArtifactKind kind, std::string_view name);
/// Whether a member may have this name: parts of [A-Za-z0-9._-] that do not begin with '.' or '-', between slashes.
[[nodiscard]] bool is_member_name(std::string_view name) noexcept;

} // namespace warmgraph::bundle
