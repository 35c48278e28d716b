#include "upkeep/eviction.hpp"

#include <algorithm>

#include "upkeep/inventory.hpp"
#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph::store {
namespace {

/// Entries that are evicted together, and the latest use of any of them.
struct Group {
    std::chrono::system_clock::time_point last_used;
    std::vector<const InventoryEntry*> entries;
};

/// The least recently used first.
std::vector<Group> groups_of(const std::vector<InventoryEntry>& entries)
{
    const Pairs pairs{entries};
    const auto used = [](const InventoryEntry* entry) { return entry->stamp.used; };
    std::vector<Group> groups;
    for (const InventoryEntry& entry : entries) {
        auto beside = pairs.beside(entry);
        if (beside.front() != &entry) continue;
        groups.push_back({used(*std::ranges::max_element(beside, {}, used)), std::move(beside)});
    }
    std::ranges::sort(groups, {}, [](const Group& one) { return std::pair(one.last_used, one.entries.front()->key); });
    return groups;
}

} // namespace

Result<Removal::Amount> evict(LocalTier& tier, const EntryKey& published)
{
    const Disk& disk = tier.disk();
    const auto digests = disk.entries_of(published.function);
    if (!digests) return std::unexpected(digests.error());
    const std::size_t limit = std::max<std::size_t>(disk.options.max_variants, 1);
    Removal::Amount evicted;
    if (digests->size() <= limit) return evicted;
    const auto entries = entries_with_recordings(tier, published.function);
    if (!entries) return std::unexpected(entries.error());
    auto others = groups_of(*entries);
    std::erase_if(others, [&](const Group& one) {
        return std::ranges::find(one.entries, published, &InventoryEntry::key) != one.entries.end();
    });
    for (std::size_t i = 0; i + limit <= others.size(); ++i)
        for (const InventoryEntry* const entry : others[i].entries) {
            const Path path = disk.layout.entry(entry->key);
            if (auto removed = disk.files.remove(path); !removed) return std::unexpected(removed.error());
            evicted += {1, entry->stamp.size};
            log().info("evicted {}: more than {}", path.string(), plural(limit, "variant"));
        }
    return evicted;
}

} // namespace warmgraph::store
