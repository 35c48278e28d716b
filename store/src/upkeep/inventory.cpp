#include "upkeep/inventory.hpp"

#include <algorithm>

#include "reading.hpp"
#include "upkeep/clear_plan.hpp"
#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::store {
namespace {

/// Adds to an inventory until the time limit.
class InventoryReader {
public:
    InventoryReader(const Disk& disk, const TimeLimit& limit, Inventory& inventory)
        : m_disk(disk), m_limit(limit), m_inventory(inventory)
    {
    }

    Result<void> at_entries(const FunctionKey& function)
    {
        if (is_over()) return {};
        const auto digests = m_disk.entries_of(function);
        if (!digests) return std::unexpected(digests.error());
        for (const Digest& digest : *digests) {
            const EntryKey key{function, digest};
            const auto info = m_disk.files.info(m_disk.layout.entry(key));
            if (!info) return std::unexpected(info.error());
            if (*info) m_inventory.entries.push_back({key, stamp_of(**info)});
        }
        return {};
    }
    Result<void> at_images()
    {
        if (is_over()) return {};
        const auto names = m_disk.image_names();
        if (!names) return std::unexpected(names.error());
        for (const Name& name : *names) {
            if (is_over()) return {};
            const auto info = m_disk.files.info(m_disk.layout.path(name));
            if (!info) return std::unexpected(info.error());
            if (*info) m_inventory.images.emplace(std::get<ImageName>(name).digest, stamp_of(**info));
        }
        return {};
    }
    Result<void> at_artifacts(ArtifactKind kind)
    {
        if (is_over()) return {};
        const auto names = m_disk.artifact_names(kind);
        if (!names) return std::unexpected(names.error());
        for (const Name& name : *names) {
            if (is_over()) return {};
            const Path path = m_disk.layout.path(name);
            const auto info = m_disk.files.info(path);
            if (!info) return std::unexpected(info.error());
            if (*info) m_inventory.artifacts.push_back({kind, {path, stamp_of(**info)}});
        }
        return {};
    }

private:
    bool is_over()
    {
        if (m_inventory.is_whole && m_limit.is_over(m_disk.clock)) m_inventory.is_whole = false;
        return !m_inventory.is_whole;
    }

    const Disk& m_disk;
    const TimeLimit& m_limit;
    Inventory& m_inventory;
};

/// Starts at another function each time, so that a time limit does not always leave out the same functions.
void rotate(std::vector<FunctionKey>& functions, const Clock& clock)
{
    if (functions.empty()) return;
    const auto now = static_cast<std::uint64_t>(clock.wall().time_since_epoch() / std::chrono::microseconds(1));
    std::ranges::rotate(functions, functions.begin() + static_cast<std::ptrdiff_t>(now % functions.size()));
}

std::vector<Digest> distinct(std::vector<Digest> digests)
{
    std::ranges::sort(digests);
    const auto rest = std::ranges::unique(digests);
    digests.erase(rest.begin(), rest.end());
    return digests;
}

} // namespace

Removal::Amount Inventory::total() const
{
    Removal::Amount all;
    for (const ArtifactKind kind : kinds_for(KindUse::budgeted)) all += total(kind);
    for (const StoredFile& file : quarantined) all += {1, file.stamp.size};
    return all;
}

Removal::Amount Inventory::total(ArtifactKind kind) const noexcept
{
    Removal::Amount total;
    for (const StoredArtifact& artifact : artifacts)
        if (artifact.kind == kind) total += {1, artifact.file.stamp.size};
    if (kind != ArtifactKind::entries) return total;
    for (const InventoryEntry& entry : entries) total += {1, entry.stamp.size};
    for (const auto& [digest, stamp] : images) total += {1, stamp.size};
    return total;
}

Result<Inventory> take_inventory(const Disk& disk, const TimeLimit& limit)
{
    Inventory inventory;
    inventory.taken = disk.clock.wall();
    auto functions = disk.list_functions(limit);
    if (!functions) return std::unexpected(functions.error());
    inventory.is_readable = !functions->left_out;
    inventory.is_whole = functions->is_whole;
    rotate(functions->keys, disk.clock);
    InventoryReader reader(disk, limit, inventory);
    for (const FunctionKey& function : functions->keys)
        if (auto ok = reader.at_entries(function); !ok) return std::unexpected(ok.error());
    if (auto ok = reader.at_images(); !ok) return std::unexpected(ok.error());
    for (const ArtifactKind kind : kinds_with_files())
        if (auto ok = reader.at_artifacts(kind); !ok) return std::unexpected(ok.error());
    const auto quarantined = quarantined_files(disk);
    if (!quarantined) return std::unexpected(quarantined.error());
    for (const auto& [name, info] : *quarantined)
        inventory.quarantined.push_back({Layout::quarantine() / name, stamp_of(info)});
    return inventory;
}

Result<void> read_images(LocalTier& tier, Inventory& inventory, const TimeLimit& limit)
{
    const Disk& disk = tier.disk();
    inventory.knows_images = inventory.is_readable;
    for (InventoryEntry& entry : inventory.entries) {
        if (!inventory.knows_images || limit.is_over(disk.clock)) {
            inventory.knows_images = false;
            return {};
        }
        const auto read = read_entry(tier, entry.key, caps_of(disk.options), LookupBy::by_name);
        if (!read && read.error().code != ErrorCode::permission_denied) return std::unexpected(read.error());
        if (read && !*read) continue;
        if (read && (*read)->content) {
            const auto& [header, graph] = *(*read)->content;
            entry.images = distinct(cachefmt::blobs_of(graph));
            if (is_part(header)) entry.recording = header.recording;
            entry.is_joined = !cachefmt::check_not_joined(header);
        } else if (!read || (*read)->fate == Fate::leave)
            inventory.knows_images = false;
    }
    return {};
}

bool is_part(const EntryHeader& header) noexcept
{
    return header.kind == cachefmt::EntryKind::graph && header.recording &&
           header.recording->part != cachefmt::Part::whole;
}

Result<std::vector<InventoryEntry>> entries_with_recordings(LocalTier& tier, const FunctionKey& function)
{
    const Disk& disk = tier.disk();
    const auto digests = disk.entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    std::vector<InventoryEntry> entries;
    for (const Digest& digest : *digests) {
        const EntryKey key{function, digest};
        const auto info = disk.files.info(disk.layout.entry(key));
        if (!info) return std::unexpected(info.error());
        if (!*info) continue;
        InventoryEntry& entry = entries.emplace_back(InventoryEntry{key, stamp_of(**info)});
        const auto read = read_header(tier, key, caps_of(disk.options), LookupBy::by_name);
        if (read && *read && (*read)->content && is_part(*(*read)->content))
            entry.recording = (*read)->content->recording;
    }
    return entries;
}

Pairs::Pairs(const std::vector<InventoryEntry>& entries)
{
    for (const InventoryEntry& entry : entries)
        if (entry.recording) m_parts[id_of(entry)].push_back(&entry);
    for (auto& [id, parts] : m_parts)
        std::ranges::stable_sort(parts, {}, [](const InventoryEntry* entry) { return entry->recording->part; });
}

Pairs::Id Pairs::id_of(const InventoryEntry& entry)
{
    return {entry.key.function.model_info, entry.key.function.rank, entry.recording->id};
}

bool Pairs::is_whole(const InventoryEntry& entry) const
{
    if (!entry.recording) return true;
    const auto& parts = m_parts.at(id_of(entry));
    return parts.front()->recording->part != parts.back()->recording->part;
}

std::vector<const InventoryEntry*> Pairs::beside(const InventoryEntry& entry) const
{
    if (!entry.recording) return {&entry};
    return m_parts.at(id_of(entry));
}

} // namespace warmgraph::store
