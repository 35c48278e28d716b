// What the cache folder holds of each kind, and in quarantine, with sizes and last uses.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tiers/local/local_tier.hpp"

namespace warmgraph::store {

struct StoredEntry {
    EntryKey key;
    Stamp stamp;
    std::vector<Digest> images{};                       ///< that it names; empty before read_images()
    std::optional<cachefmt::RecordingPart> recording{}; ///< of one of a pair's; likewise
    bool is_joined = false;                             ///< check_not_joined(); likewise
};

/// Whether the entry is one of a pair's, which is used with another one or not at all.
[[nodiscard]] bool is_part(const EntryHeader& header) noexcept;

/// A function's entries, with what their headers say of recordings. Images are not read.
[[nodiscard]] Result<std::vector<StoredEntry>> entries_with_recordings(LocalTier& tier, const FunctionKey& function);

/// Which entries belong to each other: those of one model and rank with one recording id.
class Pairs {
public:
    /// `entries` must outlive it and stay where they are.
    explicit Pairs(const std::vector<StoredEntry>& entries);

    /// Is there a forward, and a backward? True for what is none of a pair's.
    [[nodiscard]] bool is_whole(const StoredEntry& entry) const;
    /// Forwards first. The entry alone where it is none of a pair's.
    [[nodiscard]] std::vector<const StoredEntry*> beside(const StoredEntry& entry) const;

    using Id = std::tuple<std::string, std::string, cachefmt::RecordingId>;
    /// REQUIRES: it is one of a pair's.
    [[nodiscard]] static Id id_of(const StoredEntry& entry);

private:
    std::map<Id, std::vector<const StoredEntry*>> m_parts;
};

struct StoredFile {
    Path path;
    Stamp stamp;
};

struct StoredArtifact {
    ArtifactKind kind;
    StoredFile file;
};

struct Inventory {
    std::vector<StoredEntry> entries;
    std::map<Digest, Stamp> images;
    std::vector<StoredFile> quarantined; ///< with their reasons
    std::vector<StoredArtifact> artifacts;
    std::chrono::system_clock::time_point taken{}; ///< before the first look
    bool is_whole = true;                          ///< false: the time was over before all was seen
    bool knows_images = false; ///< is it known which images are needed? Nobody knows before read_images()
    bool is_readable = true;   ///< false: there are functions' folders that may not be listed

    [[nodiscard]] Removal::Amount total() const;
    [[nodiscard]] Removal::Amount total(ArtifactKind kind) const noexcept; ///< with its parts
};

/// Looks at names, sizes and times: reads no file. Where the limit ends it, another part is seen each time.
[[nodiscard]] Result<Inventory> take_inventory(const Disk& disk, const TimeLimit& limit);

/// Which images each entry names: reads all entries. Not all are known where the limit ends it, or where there are
/// entries that cannot be read here and may be another's: of a newer warmgraph, or of an owner whom others trust.
[[nodiscard]] Result<void> read_images(LocalTier& tier, Inventory& inventory, const TimeLimit& limit);

} // namespace warmgraph::store
