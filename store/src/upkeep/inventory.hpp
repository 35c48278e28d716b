// What the cache folder holds: entries, images and quarantine, with sizes and last uses.
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

struct Inventory {
    std::vector<StoredEntry> entries;
    std::map<Digest, Stamp> images;
    std::vector<StoredFile> quarantined; ///< with their reasons

    [[nodiscard]] Removal::Amount total() const noexcept;
};

/// Looks at names, sizes and times: reads no file.
[[nodiscard]] Result<Inventory> take_inventory(const Disk& disk);

/// Which images each entry names: reads all entries. False: not all could be known before `deadline`, or there are a
/// newer warmgraph's entries, which cannot be read.
[[nodiscard]] Result<bool> read_images(LocalTier& tier, Inventory& inventory,
                                       std::chrono::steady_clock::time_point deadline);

} // namespace warmgraph::store
