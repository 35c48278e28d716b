// The contents of the cache folder by kind, and of quarantine, with sizes and last uses.
#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "tiers/local/local_tier.hpp"

namespace warmgraph::store {

struct InventoryEntry {
    EntryKey key;
    Stamp stamp;
    std::vector<Digest> images{};                       ///< images that the entry names; empty before read_images()
    std::optional<cachefmt::RecordingPart> recording{}; ///< set for an entry of a pair; empty before read_images()
    bool is_joined = false;                             ///< check_not_joined() failed; false before read_images()
};

/// Whether the entry belongs to a pair; such an entry is used together with its partner or not at all.
[[nodiscard]] bool is_part(const EntryHeader& header) noexcept;

/// A function's entries with the recordings in their headers. Images are not read.
[[nodiscard]] Result<std::vector<InventoryEntry>> entries_with_recordings(LocalTier& tier, const FunctionKey& function);

/// Finds the entries that belong together: entries of one model and rank with one recording id.
class Pairs {
public:
    /// `entries` must outlive this object and must not move.
    explicit Pairs(const std::vector<InventoryEntry>& entries);

    /// Whether the pair has a forward and a backward. True for an entry without a pair.
    [[nodiscard]] bool is_whole(const InventoryEntry& entry) const;
    /// Returns all entries of the pair, forwards first; only the entry itself when it has no pair.
    [[nodiscard]] std::vector<const InventoryEntry*> beside(const InventoryEntry& entry) const;

    using Id = std::tuple<std::string, std::string, cachefmt::RecordingId>;
    /// REQUIRES: is_part().
    [[nodiscard]] static Id id_of(const InventoryEntry& entry);

private:
    std::map<Id, std::vector<const InventoryEntry*>> m_parts;
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
    std::vector<InventoryEntry> entries;
    std::map<Digest, Stamp> images;
    std::vector<StoredFile> quarantined; ///< includes the files with the reasons
    std::vector<StoredArtifact> artifacts;
    std::chrono::system_clock::time_point taken{}; ///< the time before the first look
    bool is_whole = true;                          ///< false: the time limit ended the inventory
    bool knows_images = false;                     ///< whether the needed images are known; false before read_images()
    bool is_readable = true;                       ///< false: some functions' folders may not be listed

    [[nodiscard]] Removal::Amount total() const;
    [[nodiscard]] Removal::Amount total(ArtifactKind kind) const noexcept; ///< includes the kind's parts
};

/// Collects names, sizes and times; reads no file. When the limit ends it, the next call sees another part.
[[nodiscard]] Result<Inventory> take_inventory(const Disk& disk, const TimeLimit& limit);

/// Reads all entries to find the images that they name. `knows_images` stays false when the limit ends the reading, or
/// when some entries cannot be read here and other users may need them (entries of a newer warmgraph, or of a foreign
/// owner).
[[nodiscard]] Result<void> read_images(LocalTier& tier, Inventory& inventory, const TimeLimit& limit);

} // namespace warmgraph::store
