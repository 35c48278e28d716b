// A tier keeps bytes under names. It knows neither what they mean nor whether they are intact: Store verifies all that
// a tier gives (store.hpp). The cache folder is a tier (local_store.hpp); a remote one implements the same four calls.
//
// Thread-safe. A failure is an Error for the caller to count, never an exception: a tier that cannot be reached costs
// time, not the caller's result. tests/store/tier_conformance.hpp holds what every tier does.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::store {

using cachefmt::EntryKey;
using cachefmt::FunctionKey;

/// Device code, named by the SHA-256 of its bytes.
struct ImageName {
    Digest digest;
    auto operator<=>(const ImageName&) const = default;
};

/// What is neither an entry nor an image. Named by the digest of what it was made of or for; what its bytes mean is known to
/// autotune/, precompile/, profile/ and, of the last kind, to PyTorch alone (torch_artifacts.hpp).
struct ArtifactName {
    ArtifactKind kind = ArtifactKind::tuned; ///< one that has files
    Digest digest;
    std::uint8_t form = 0; ///< which of the kind's KindRow::suffixes
    auto operator<=>(const ArtifactName&) const = default;
};
/// ".best_config", ".module_configs", ".compiled", ".profile", ".mega_cache"
[[nodiscard]] std::string_view suffix_of(const ArtifactName& name) noexcept;
/// "<64 hex digits><suffix>", as the file is called; and back.
[[nodiscard]] std::string file_name(const ArtifactName& name);
[[nodiscard]] std::optional<ArtifactName> artifact_from_file_name(std::string_view name);

/// What a tier keeps.
using Name = std::variant<EntryKey, ImageName, ArtifactName>;
/// A constant's contents are named as an image is, and taken for one.
[[nodiscard]] ArtifactKind kind_of(const Name& name) noexcept;

/// One line of [A-Za-z0-9._/-], for tiers whose names are text: "entries/<model_info>/<rank>/<function>/<64 hex
/// digits>", "images/<64 hex digits>", "autotune/<64 hex digits>.best_config", "compiled/<64 hex digits>.compiled",
/// "profile/<64 hex digits>.profile", "torch/<64 hex digits>.mega_cache".
[[nodiscard]] std::string to_text(const Name& name);
/// The reverse; nullopt for any text that to_text() does not make.
[[nodiscard]] std::optional<Name> name_from_text(std::string_view text);

/// What list() is asked for: all of a kind, or (of entries) those of a function.
struct Scope {
    ArtifactKind kind = ArtifactKind::entries;
    std::optional<FunctionKey> function{};
};
/// What the names in this scope begin with, as to_text() writes them: "entries/<model_info>/<rank>/<function>/".
[[nodiscard]] std::string prefix_of(const Scope& scope);

/// How much of an object is wanted.
struct Extent {
    std::uint64_t bytes = 0; ///< at most
    /// Must it be the whole object? Then one that is larger is `corrupt` and need not be read.
    bool whole = true;
};

/// Tells one state of an object from the next. A tier that cannot tell leaves out what it does not know.
struct Stamp {
    std::uint64_t size = 0;                       ///< bytes of the whole object
    std::uint64_t version = 0;                    ///< another one: another object
    std::chrono::system_clock::time_point used{}; ///< when it was put, or used since (note_use)
    bool operator==(const Stamp&) const = default;
};

/// An object, and what was read of it.
struct Found {
    Stamp stamp;         ///< from before the bytes were read
    Result<Bytes> bytes; ///< `corrupt`: what stands there is no object (a link, a folder), or is larger than wanted
};

/// One of several objects that were got at once.
struct FoundEntry {
    EntryKey key;
    Result<Found> found; ///< an Error says nothing about the object
};

class Tier {
public:
    virtual ~Tier() = default;

    /// The object's first bytes. nullopt: there is none. An Error around it says nothing about the object.
    [[nodiscard]] virtual Result<std::optional<Found>> get(const Name& name, Extent extent) = 0;
    /// Keeps exactly these bytes under the name, or leaves what was there. Whoever gets meanwhile gets one or the other.
    [[nodiscard]] virtual Result<void> put(const Name& name, ByteView bytes) = 0;
    /// Removing what is not there is no failure.
    [[nodiscard]] virtual Result<void> remove(const Name& name) = 0;
    /// Sorted. What is put or removed meanwhile may be there or not.
    [[nodiscard]] virtual Result<std::vector<Name>> list(const Scope& scope) = 0;

    // --- what a tier may do besides
    /// The first bytes of each of a function's entries, sorted by key. Without more, list() and get() of each.
    [[nodiscard]] virtual Result<std::vector<FoundEntry>> get_entries(const FunctionKey& function, Extent extent);
    /// The object is used now: what makes room goes by that. not_found where the tier sees that there is none.
    [[nodiscard]] virtual Result<void> note_use(const Name& name);
    /// The bytes with this stamp failed verification, for `reason`: they are not given again. A better object that was
    /// put meanwhile stays. Best effort. Without more, the object is removed.
    virtual void refuse(const Name& name, const Stamp& stamp, const Error& reason) noexcept;
};

} // namespace warmgraph::store
