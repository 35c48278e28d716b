#include "upkeep/inventory.hpp"

#include <algorithm>

#include "reading.hpp"
#include "upkeep/clear_plan.hpp"
#include "warmgraph/cachefmt/image_use.hpp"

namespace warmgraph::store {
namespace {

Result<void> add_entries(const Disk& disk, const FunctionKey& function, Inventory& inventory)
{
    const auto digests = disk.entries_of(function);
    if (!digests) return std::unexpected(digests.error());
    for (const Digest& digest : *digests) {
        const EntryKey key{function, digest};
        const auto info = disk.files.info(disk.layout.entry(key));
        if (!info) return std::unexpected(info.error());
        if (*info) inventory.entries.push_back({key, stamp_of(**info)});
    }
    return {};
}

Result<void> add_images(const Disk& disk, Inventory& inventory)
{
    const auto names = disk.image_names();
    if (!names) return std::unexpected(names.error());
    for (const Name& name : *names) {
        const auto info = disk.files.info(disk.layout.path(name));
        if (!info) return std::unexpected(info.error());
        if (*info) inventory.images.emplace(std::get<ImageName>(name).digest, stamp_of(**info));
    }
    return {};
}

Result<void> add_artifacts(const Disk& disk, Kind kind, Inventory& inventory)
{
    const auto names = disk.artifact_names(Layout::artifacts(kind));
    if (!names) return std::unexpected(names.error());
    for (const Name& name : *names) {
        const Path path = disk.layout.path(name);
        const auto info = disk.files.info(path);
        if (!info) return std::unexpected(info.error());
        if (*info) inventory.artifacts.push_back({kind, {path, stamp_of(**info)}});
    }
    return {};
}

std::vector<Digest> distinct(std::vector<Digest> digests)
{
    std::ranges::sort(digests);
    const auto rest = std::ranges::unique(digests);
    digests.erase(rest.begin(), rest.end());
    return digests;
}

} // namespace

Removal::Amount Inventory::total() const noexcept
{
    Removal::Amount all;
    for (const Kind kind : k_kinds) all += total(kind);
    for (const StoredFile& file : quarantined) all += {1, file.stamp.size};
    return all;
}

Removal::Amount Inventory::total(Kind kind) const noexcept
{
    Removal::Amount total;
    for (const StoredArtifact& artifact : artifacts)
        if (artifact.kind == kind) total += {1, artifact.file.stamp.size};
    if (kind != Kind::graphs) return total;
    for (const StoredEntry& entry : entries) total += {1, entry.stamp.size};
    for (const auto& [digest, stamp] : images) total += {1, stamp.size};
    return total;
}

Result<Inventory> take_inventory(const Disk& disk, std::chrono::steady_clock::time_point deadline)
{
    Inventory inventory;
    inventory.taken = disk.clock.wall();
    const auto is_late = [&] { return disk.clock.steady() >= deadline; };
    const auto functions = disk.list_functions();
    if (!functions) return std::unexpected(functions.error());
    inventory.is_readable = !functions->left_out;
    for (const FunctionKey& function : functions->keys) {
        if (is_late()) break;
        if (auto ok = add_entries(disk, function, inventory); !ok) return std::unexpected(ok.error());
    }
    if (!is_late())
        if (auto ok = add_images(disk, inventory); !ok) return std::unexpected(ok.error());
    for (const Kind kind : k_kinds_of_artifacts)
        if (!is_late())
            if (auto ok = add_artifacts(disk, kind, inventory); !ok) return std::unexpected(ok.error());
    inventory.is_whole = !is_late();
    const auto quarantined = quarantined_files(disk);
    if (!quarantined) return std::unexpected(quarantined.error());
    for (const auto& [name, info] : *quarantined)
        inventory.quarantined.push_back({Layout::quarantine() / name, stamp_of(info)});
    return inventory;
}

Result<void> read_images(LocalTier& tier, Inventory& inventory, std::chrono::steady_clock::time_point deadline)
{
    const Disk& disk = tier.disk();
    inventory.knows_images = inventory.is_readable;
    for (StoredEntry& entry : inventory.entries) {
        if (!inventory.knows_images || disk.clock.steady() >= deadline) {
            inventory.knows_images = false;
            return {};
        }
        const auto read = read_entry(tier, entry.key, caps_of(disk.options), Asked::by_name);
        if (!read && read.error().code != ErrorCode::permission_denied) return std::unexpected(read.error());
        if (read && !*read) continue;
        if (read && (*read)->content)
            entry.images = distinct(cachefmt::blobs_of((*read)->content->graph));
        else if (!read || (*read)->fate == Fate::leave)
            inventory.knows_images = false;
    }
    return {};
}

} // namespace warmgraph::store
