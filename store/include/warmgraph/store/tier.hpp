// A tier keeps bytes under names. It knows neither their meaning nor whether they are intact: Store verifies everything
// that a tier gives (store.hpp). The cache folder is a tier (local_store.hpp); a remote tier implements the same four
// calls.
//
// Thread-safe. A failure is an Error for the caller to count, never an exception: a tier that cannot be reached costs
// time, not the caller's result. tests/store/tier_conformance.hpp tests what every tier must do.
#pragma once

#include <algorithm>
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

/// The name of an object that is neither an entry nor an image: the digest of its inputs. autotune/, precompile/ and
/// profile/ define the bytes of these objects; PyTorch defines those of ArtifactKind::torch (torch_artifacts.hpp).
struct ArtifactName {
    ArtifactKind kind = ArtifactKind::tuned; ///< a kind that has files
    Digest digest;
    std::uint8_t form = 0; ///< index into the kind's KindRow::suffixes
    auto operator<=>(const ArtifactName&) const = default;
};
/// Returns ".best_config", ".module_configs", ".compiled", ".profile" or ".mega_cache".
[[nodiscard]] std::string_view suffix_of(const ArtifactName& name) noexcept;
/// The file's name, "<64 hex digits><suffix>", and the reverse.
[[nodiscard]] std::string file_name(const ArtifactName& name);
[[nodiscard]] std::optional<ArtifactName> artifact_from_file_name(std::string_view name);

/// The name of an object in a tier.
using Name = std::variant<EntryKey, ImageName, ArtifactName>;
/// A constant has an ImageName, so it counts as an image here.
[[nodiscard]] ArtifactKind kind_of(const Name& name) noexcept;

/// Returns the name as one line of [A-Za-z0-9._/-], for tiers whose names are text:
/// "entries/<model_info>/<rank>/<function>/<64 hex digits>", "images/<64 hex digits>", "autotune/<64 hex
/// digits>.best_config", "compiled/<64 hex digits>.compiled", "profile/<64 hex digits>.profile", "torch/<64 hex
/// digits>.mega_cache".
[[nodiscard]] std::string to_text(const Name& name);
/// Returns the name that has this text; nullopt for any text that to_text() cannot make.
[[nodiscard]] std::optional<Name> name_from_text(std::string_view text);

/// The objects that list() returns: all of a kind, or the entries of one function.
struct Scope {
    ArtifactKind kind = ArtifactKind::entries;
    std::optional<FunctionKey> function{};
};
/// The common prefix of the to_text() names in this scope: "entries/<model_info>/<rank>/<function>/".
[[nodiscard]] std::string prefix_of(const Scope& scope);

/// How much of an object to read, and how long that may take.
struct ReadLimit {
    std::uint64_t bytes = 0; ///< the most bytes to read
    /// true: the object must fit into `bytes`; a larger one is `corrupt` and need not be read
    bool whole = true;
    std::uint64_t offset = 0; ///< where the bytes begin in the object; a whole object begins at 0
    /// The answer is worth no more time than this; 0: the tier's own limit. The folder reads in any case.
    std::chrono::milliseconds within{0};
};

/// The number of bytes from the object's beginning to the last one that is asked for.
[[nodiscard]] inline std::uint64_t end_of(const ReadLimit& extent) noexcept
{
    return extent.bytes > ~extent.offset ? ~0ULL : extent.offset + extent.bytes;
}
/// Leaves of an object's bytes, from its beginning on, those that were asked for.
inline void cut(Bytes& bytes, const ReadLimit& extent)
{
    const std::uint64_t size = bytes.size(), begin = std::min(extent.offset, size);
    bytes.resize(begin + std::min(extent.bytes, size - begin));
    bytes.erase(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(begin));
}

/// Whether an object that has the name already is replaced.
enum class PutMode : std::uint8_t {
    replace,
    create_only, ///< the object there stays, and that is a success; a tier that cannot tell replaces it
};

/// Identifies one state of an object. A tier leaves out the members that it does not know.
struct Stamp {
    std::uint64_t size = 0;                       ///< bytes of the whole object
    std::uint64_t version = 0;                    ///< changes when another object takes the name
    std::chrono::system_clock::time_point used{}; ///< when it was put, or last used (note_use)
    bool operator==(const Stamp&) const = default;
};

/// An object and the bytes that were read.
struct StampedBytes {
    Stamp stamp;         ///< taken before the bytes were read
    Result<Bytes> bytes; ///< `corrupt`: not a regular object (a link, a folder), or larger than requested
};

/// One of several objects that were read at once.
struct StampedEntry {
    EntryKey key;
    Result<StampedBytes> found; ///< an Error: the tier failed; the object may be intact
};

class Tier {
public:
    virtual ~Tier() = default;

    /// Reads the object's first bytes. nullopt: not found. An Error as the outer result says nothing about the object.
    [[nodiscard]] virtual Result<std::optional<StampedBytes>> get(const Name& name, ReadLimit extent) = 0;
    /// Keeps exactly these bytes under the name, or leaves the old object. A concurrent get() sees one of the two.
    [[nodiscard]] virtual Result<void> put(const Name& name, ByteView bytes, PutMode mode) = 0;
    [[nodiscard]] Result<void> put(const Name& name, ByteView bytes) { return put(name, bytes, PutMode::replace); }
    /// Removes an object. Removing a missing object is not a failure.
    [[nodiscard]] virtual Result<void> remove(const Name& name) = 0;
    /// Lists the names, sorted. Objects that are put or removed meanwhile may be missing or present.
    [[nodiscard]] virtual Result<std::vector<Name>> list(const Scope& scope) = 0;

    // --- Calls that a tier may override
    /// The first bytes of each entry of a function, sorted by key. The default calls list() and then get() for each.
    [[nodiscard]] virtual Result<std::vector<StampedEntry>> get_entries(const FunctionKey& function, ReadLimit extent);
    /// Marks the object as used now; the least recently used are removed first. not_found: the object is missing.
    [[nodiscard]] virtual Result<void> note_use(const Name& name);
    /// The bytes with this stamp failed verification, for `reason`: the tier must not give them again. A better object
    /// that was put meanwhile stays. Best effort. The default removes the object.
    virtual void refuse(const Name& name, const Stamp& stamp, const Error& reason) noexcept;
    /// The name of a store that other machines share, for messages; "" for the folder and its bundles. A remote is asked
    /// last, and what it gives is copied into the folder.
    [[nodiscard]] virtual std::string_view remote_label() const noexcept { return {}; }
    [[nodiscard]] bool is_remote() const noexcept { return !remote_label().empty(); }
};

} // namespace warmgraph::store
