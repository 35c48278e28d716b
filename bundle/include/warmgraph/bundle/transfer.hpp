// Between a cache folder and a bundle: what goes in, what comes out, and what is left where it is, and why.
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

/// What was moved, of one kind.
struct Amount {
    std::uint64_t count = 0, bytes = 0;
    /// For entries: the time that first calls without the cache took, compiling included. Of compiled programs: that compiling took. Of
    /// tuned configurations: that tuning took. Others do not know.
    double seconds = 0;
    std::vector<std::string> names{};
};

struct Left {
    std::string name, why;
};

struct Transfer {
    std::map<ArtifactKind, Amount> moved{};
    std::vector<Left> there{};   ///< in the target already: nothing is replaced
    std::vector<Left> skipped{}; ///< not moved, and why
    void add(ArtifactKind kind, std::string_view name, std::uint64_t bytes, double seconds = 0);
    void merge(Transfer&& more);
};

/// After each object: how many of how many.
using Progress = std::function<void(std::uint64_t done, std::uint64_t total)>;

/// How an object is got: the folder's bytes, or those of a layer.
using Getter = std::function<Result<std::optional<Bytes>>(const store::Name&)>;

/// Entries with their images and constants. Tombstones, and what is damaged, are skipped. An Error is the writer's.
[[nodiscard]] Result<Transfer> gather(Writer& writer, const std::vector<store::EntryKey>& entries, const Getter& get,
                                      const Progress& progress = {});

/// Objects that stand alone. What is damaged, or gone, is skipped. An Error is the writer's.
[[nodiscard]] Result<Transfer> gather(Writer& writer, const std::vector<store::ArtifactName>& artifacts,
                                      const Getter& get, const Progress& progress = {});
/// The names of all artifacts in a tier, of the kinds that are wanted.
[[nodiscard]] Result<std::vector<store::ArtifactName>> artifacts_of(store::Tier& tier,
                                                                    const std::function<bool(ArtifactKind)>& wanted);

/// Empty: the entry is wanted; else why not. Asked before anything of it is read.
using Wanted = std::function<std::string(const cachefmt::EntryHeader&)>;
/// The same of an object that stands alone, by its name and what it says of itself. No function: all are wanted.
using WantedArtifact = std::function<std::string(const Bundle& bundle, const Member& member)>;

struct UnpackOptions {
    Progress progress{};
    WantedArtifact artifacts{};
    profile::Library::Lock profile_lock{}; ///< held while a profile is joined with the folder's
};

/// Puts every entry that is wanted into the folder, with what it needs, images first; and every object of other kinds that
/// is wanted and can be verified. Never replaces what is there: profiles are joined. What cannot be read or verified is
/// skipped; an Error is the folder's. Where the bundle was opened with a trust that requires signatures, objects that have
/// none of their own are taken only if the bundle has one; those that need a signed bundle only from one that an accepted
/// key signed.
[[nodiscard]] Result<Transfer> unpack(const Bundle& bundle, store::Tier& folder, const Wanted& wanted,
                                      const UnpackOptions& options = {});

/// May it be taken out of this bundle, whatever it holds? `unsupported`: this version cannot verify it; `untrusted`.
/// unpack() and copy_members() both ask this first: the key that signs a new bundle must not vouch for what loading refuses.
[[nodiscard]] Result<void> check_usable(const Bundle& bundle, const Member& member);
/// The header of a graph that may be taken: it is no tombstone, and its own signature is accepted where one is asked for.
[[nodiscard]] Result<cachefmt::EntryHeader> usable_graph(const Bundle& bundle, const Member& graph);

/// Which members of a bundle a graph needs, by name. Reads the graph.
[[nodiscard]] Result<std::vector<std::string>> needs_of(const Bundle& bundle, const Member& graph);

/// Copies the graphs that are wanted with what they need, and the members that stand alone, of what unpack() would take.
/// Names that `writer` has already are left out; so are members that need a signed bundle where the new one is not signed.
[[nodiscard]] Result<Transfer> copy_members(const Bundle& from, Writer& writer, const Wanted& wanted,
                                            const WantedArtifact& artifacts = {});

} // namespace warmgraph::bundle
