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
    Removal::Amount total;
    for (const StoredEntry& entry : entries) total += {1, entry.stamp.size};
    for (const auto& [digest, stamp] : images) total += {1, stamp.size};
    for (const StoredFile& file : quarantined) total += {1, file.stamp.size};
    return total;
}

Result<Inventory> take_inventory(const Disk& disk)
{
    Inventory inventory;
    const auto functions = disk.functions();
    if (!functions) return std::unexpected(functions.error());
    for (const FunctionKey& function : *functions)
        if (auto ok = add_entries(disk, function, inventory); !ok) return std::unexpected(ok.error());
    if (auto ok = add_images(disk, inventory); !ok) return std::unexpected(ok.error());
    const auto quarantined = quarantined_files(disk);
    if (!quarantined) return std::unexpected(quarantined.error());
    for (const auto& [name, info] : *quarantined)
        inventory.quarantined.push_back({Layout::quarantine() / name, stamp_of(info)});
    return inventory;
}

Result<bool> read_images(LocalTier& tier, Inventory& inventory, std::chrono::steady_clock::time_point deadline)
{
    const Disk& disk = tier.disk();
    for (StoredEntry& entry : inventory.entries) {
        if (disk.clock.steady() >= deadline) return false;
        const auto read = read_entry(tier, entry.key, caps_of(disk.options), Asked::by_name);
        if (!read && read.error().code == ErrorCode::permission_denied) continue; // nobody uses it as it is
        if (!read) return std::unexpected(read.error());
        if (!*read) continue;
        if ((*read)->content)
            entry.images = distinct(cachefmt::blobs_of((*read)->content->graph));
        else if ((*read)->fate == Judged<Entry>::Fate::leave)
            return false;
    }
    return true;
}

} // namespace warmgraph::store
