// Moves objects between a cache folder and a bundle, and reports which objects were moved and which were not, with
// reasons.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "warmgraph/bundle/bundle.hpp"
#include "warmgraph/bundle/writer.hpp"
#include "warmgraph/profile/profile_library.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::bundle {

/// The moved objects of one kind.
struct Amount {
    std::uint64_t count = 0, bytes = 0;
    /// The time that making the objects again would take. For entries: the time of first calls without the cache, with
    /// compiling. For compiled programs: the time of compiling. For tuned configurations: the time of tuning. For other
    /// kinds: 0.
    double seconds = 0;
    std::vector<std::string> names{};
};

struct UnmovedArtifact {
    std::string name, why;
};

struct Transfer {
    std::map<ArtifactKind, Amount> moved{};
    std::vector<UnmovedArtifact> there{};   ///< objects that the target already has, so they were not moved
    std::vector<UnmovedArtifact> skipped{}; ///< objects that were not moved, with the reasons
    void add(ArtifactKind kind, std::string_view name, std::uint64_t bytes, double seconds = 0);
    void merge(Transfer&& more);
};

/// Called after each object.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// Reads an object from the folder or a layer.
using Getter = std::function<Result<std::optional<Bytes>>(const store::Name&)>;

/// Adds entries with their images and constants. Skips tombstones and damaged entries. Errors: those of the writer.
[[nodiscard]] Result<Transfer> gather(Writer& writer, const std::vector<store::EntryKey>& entries, const Getter& get,
                                      const Progress& progress = {});

/// Adds artifacts that need no other object. Skips damaged and removed artifacts. Errors: those of the writer.
[[nodiscard]] Result<Transfer> gather(Writer& writer, const std::vector<store::ArtifactName>& artifacts,
                                      const Getter& get, const Progress& progress = {});
/// Returns the names of all artifacts in a tier whose kinds are `wanted`.
[[nodiscard]] Result<std::vector<store::ArtifactName>> artifacts_of(store::Tier& tier,
                                                                    const std::function<bool(ArtifactKind)>& wanted);

/// Returns an empty text if the entry is wanted, or else the reason why not. Called before the payload is read.
using EntryFilter = std::function<std::string(const cachefmt::EntryHeader&)>;
/// Does the same for an artifact, from the artifact's name and facts. Without such a function all artifacts are wanted.
using ArtifactFilter = std::function<std::string(const Bundle& bundle, const Member& member)>;

struct UnpackOptions {
    Progress progress{};
    ArtifactFilter artifacts{};
    /// Takes the lock that is held while a profile is joined with the folder's profile.
    profile::ProfileLibrary::Lock profile_lock{};
};

/// Puts every wanted entry into the folder, after the images that it needs, and every wanted artifact that can be
/// verified. Existing objects are never replaced; profiles are joined. Objects that cannot be read or verified are
/// skipped. Errors: those of the folder. If the bundle's trust requires signatures, objects without their own signature
/// are taken only from a signed bundle. Kinds that need a signed bundle are taken only from a bundle with an accepted
/// signature.
[[nodiscard]] Result<Transfer> unpack(const Bundle& bundle, store::Tier& folder, const EntryFilter& wanted,
                                      const UnpackOptions& options = {});

/// Checks that the member may be taken out of this bundle. `unsupported`: this version cannot verify the member;
/// `untrusted`: the member has no accepted signature although one is required. unpack() and copy_members() both call
/// this first: a new bundle must not sign members that loading refuses.
[[nodiscard]] Result<void> check_usable(const Bundle& bundle, const Member& member);
/// Returns the header of a graph that may be taken. Fails for a tombstone, and for a graph without an accepted
/// signature if one is required.
[[nodiscard]] Result<cachefmt::EntryHeader> usable_graph(const Bundle& bundle, const Member& graph);

/// Returns the names of the members that a graph needs. Reads the graph.
[[nodiscard]] Result<std::vector<std::string>> needs_of(const Bundle& bundle, const Member& graph);

/// Copies the wanted graphs with the members that they need, and artifacts, under the same conditions as unpack().
/// Leaves out members whose names `writer` already has, and kinds that need a signed bundle if the new bundle is not
/// signed.
[[nodiscard]] Result<Transfer> copy_members(const Bundle& from, Writer& writer, const EntryFilter& wanted,
                                            const ArtifactFilter& artifacts = {});

} // namespace warmgraph::bundle
