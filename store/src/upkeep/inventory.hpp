// What the cache folder holds of each kind, and in quarantine, with sizes and last uses.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <vector>

#include "tiers/local/local_tier.hpp"

namespace warmgraph::store {

struct StoredEntry {
    EntryKey key;
    Stamp stamp;
    std::vector<Digest> images{}; ///< that it names; empty before read_images()
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
