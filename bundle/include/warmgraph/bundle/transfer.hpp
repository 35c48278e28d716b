// Moves objects between a cache folder and a bundle, and reports the moved and the remaining ones, with reasons.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/bundle/writer.hpp"
#include "warmgraph/profile/library.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::bundle {

/// The moved objects of one kind.
struct Amount {
    std::uint64_t count = 0, bytes = 0;
    /// Entries: the time of first calls without the cache, compiling included. Compiled programs: the time of
    /// compiling. Tuned configurations: the time of tuning. Other kinds: 0.
    double seconds = 0;
    std::vector<std::string> names{};
};

struct Left {
    std::string name, why;
};

struct Transfer {
    std::map<ArtifactKind, Amount> moved{};
    std::vector<Left> there{};   ///< already in the target, so not moved
    std::vector<Left> skipped{}; ///< not moved, with the reason
    void add(ArtifactKind kind, std::string_view name, std::uint64_t bytes, double seconds = 0);
    void merge(Transfer&& more);
};

/// Called after each object.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Reads an object from the folder or a layer.
using Getter = std::function<Result<std::optional<Bytes>>(const store::Name&)>;

/// Adds entries with their images and constants. Skips tombstones and damaged entries. An Error is the writer's.
[[nodiscard]] Result<Transfer> gather(Writer& writer, const std::vector<store::EntryKey>& entries, const Getter& get,
                                      const Progress& progress = {});

/// Adds artifacts that need no other object. Skips damaged and removed ones. An Error is the writer's.
[[nodiscard]] Result<Transfer> gather(Writer& writer, const std::vector<store::ArtifactName>& artifacts,
                                      const Getter& get, const Progress& progress = {});
/// The names of all artifacts in a tier whose kinds are `wanted`.
[[nodiscard]] Result<std::vector<store::ArtifactName>> artifacts_of(store::Tier& tier,
                                                                    const std::function<bool(ArtifactKind)>& wanted);

/// Returns an empty text when the entry is wanted, else the reason why not. Called before the payload is read.
using Wanted = std::function<std::string(const cachefmt::EntryHeader&)>;
/// The same for an artifact, from its name and its facts. Without a function all are wanted.
using WantedArtifact = std::function<std::string(const Bundle& bundle, const Member& member)>;

struct UnpackOptions {
    Progress progress{};
    WantedArtifact artifacts{};
    profile::Library::Lock profile_lock{}; ///< held while a profile is joined with the folder's profile
};

/// Puts every wanted entry into the folder, after the images that it needs, and every wanted artifact that can be
/// verified. Existing objects are never replaced; profiles are joined. Objects that cannot be read or verified are
/// skipped. An Error is the folder's. If the bundle's trust requires signatures, objects without their own signature
/// are taken only from a signed bundle. Kinds that need a signed bundle require an accepted signature.
[[nodiscard]] Result<Transfer> unpack(const Bundle& bundle, store::Tier& folder, const Wanted& wanted,
                                      const UnpackOptions& options = {});

/// Whether the member may be taken out of this bundle. `unsupported`: this version cannot verify it; `untrusted`.
/// unpack() and copy_members() both call this first: a new bundle must not sign members that loading refuses.
[[nodiscard]] Result<void> check_usable(const Bundle& bundle, const Member& member);
/// The header of a graph that may be taken: not a tombstone, and with an accepted signature if one is required.
[[nodiscard]] Result<cachefmt::EntryHeader> usable_graph(const Bundle& bundle, const Member& graph);

/// The names of the members that a graph needs. Reads the graph.
[[nodiscard]] Result<std::vector<std::string>> needs_of(const Bundle& bundle, const Member& graph);

/// Copies the wanted graphs with the members that they need, and artifacts, under the same conditions as unpack().
/// Leaves out names that `writer` has already, and kinds that need a signed bundle if the new bundle is not signed.
[[nodiscard]] Result<Transfer> copy_members(const Bundle& from, Writer& writer, const Wanted& wanted,
                                            const WantedArtifact& artifacts = {});

} // namespace warmgraph::bundle
