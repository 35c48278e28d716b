#include "upkeep/prune.hpp"

#include <algorithm>

#include "tiers/local/own_names.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

constexpr std::uint64_t k_default_bytes = 8ULL << 30;
constexpr std::uint64_t k_default_files = 100'000;
constexpr std::uint64_t k_part_of_disk = 10;

constexpr std::string_view k_too_many =
    "there are too many entries to look through in between: `warmgraph prune` does it";
constexpr std::string_view k_unknown_entries =
    "images stay: there are entries that cannot be read here (a newer warmgraph's, or another user's), and which "
    "images they need cannot be known";

class Pruner {
public:
    Pruner(LocalTier& tier, Inventory inventory, const PruneGoal& goal)
        : m_tier(tier), m_disk(tier.disk()), m_inventory(std::move(inventory)), m_goal(goal)
    {
        m_result.before = m_result.after = m_inventory.total();
        std::ranges::sort(m_inventory.entries, {}, [](const StoredEntry& entry) { return entry.stamp.used; });
        for (auto* const files : {&m_inventory.quarantined, &m_inventory.compiled})
            std::ranges::sort(*files, {}, [](const StoredFile& file) { return file.stamp.used; });
        for (const StoredEntry& entry : m_inventory.entries)
            for (const Digest& image : entry.images) ++m_users[image];
        for (const auto& [digest, stamp] : m_inventory.images) m_images += {1, stamp.size};
    }

    Pruned run()
    {
        if (m_inventory.knows_images) drop_unused_images();
        for (const StoredFile& file : m_inventory.quarantined)
            if (is_too_old(file.stamp) || is_over()) drop_quarantined(file);
        // Entries and compiled programs by their last use, whichever of the two.
        auto program = m_inventory.compiled.begin();
        const auto drop_programs_before = [&](std::chrono::system_clock::time_point use) {
            for (; program != m_inventory.compiled.end() && program->stamp.used <= use; ++program)
                if (is_too_old(program->stamp) || is_over())
                    remove(program->path, program->stamp,
                           *program->path.begin() == Layout::torch() ? m_result.removed.torch
                                                                     : m_result.removed.compiled);
        };
        for (const StoredEntry& entry : m_inventory.entries) {
            drop_programs_before(entry.stamp.used);
            if (is_too_old(entry.stamp) || is_over()) drop(entry);
        }
        drop_programs_before(std::chrono::system_clock::time_point::max());
        return std::move(m_result);
    }

private:
    /// Where images cannot go, entries do not make up for them: else all would go, and nothing be gained.
    [[nodiscard]] bool is_over() const noexcept
    {
        const Removal::Amount fixed = m_inventory.knows_images ? Removal::Amount{} : m_images;
        return m_result.after.bytes - fixed.bytes > m_goal.most.bytes ||
               m_result.after.files - fixed.files > m_goal.most.files;
    }
    [[nodiscard]] bool is_too_old(const Stamp& stamp) const noexcept
    {
        return m_goal.used_before && stamp.used < *m_goal.used_before;
    }
    /// False where it stays: it was used or replaced since, or cannot be removed.
    bool remove(const Path& path, const Stamp& stamp, Removal::Amount& counted)
    {
        const auto now = m_disk.files.info(path);
        if (!now || !*now || stamp_of(**now) != stamp) return false;
        if (!m_goal.is_trial)
            if (const auto gone = m_disk.files.remove(path); !gone) {
                log().debug("{} stays: {}", path.string(), gone.error().message);
                return false;
            }
        counted += {1, stamp.size};
        --m_result.after.files;
        m_result.after.bytes -= stamp.size;
        return true;
    }
    /// Unless it was used since: whoever publishes an entry publishes, or touches, its images first.
    void drop_image(const Digest& digest, std::chrono::system_clock::time_point since)
    {
        const auto image = m_inventory.images.find(digest);
        if (image == m_inventory.images.end() || image->second.used > since) return;
        remove(m_disk.layout.image(digest), image->second, m_result.removed.images);
    }
    void drop_unused_images()
    {
        for (const auto& [digest, stamp] : m_inventory.images)
            if (!m_users.contains(digest)) drop_image(digest, m_grace_began);
    }
    void drop_quarantined(const StoredFile& file)
    {
        Removal::Amount reasons;
        const bool is_reason_of = is_reason(file.path.filename().native());
        if (!remove(file.path, file.stamp, is_reason_of ? reasons : m_result.removed.quarantined)) return;
        m_result.removed.quarantined.bytes += reasons.bytes;
    }
    void drop(const StoredEntry& entry)
    {
        bool is_gone = false;
        const bool is_free = m_tier.leases().unless_taken(entry.key, [&] {
            is_gone = remove(m_disk.layout.entry(entry.key), entry.stamp, m_result.removed.entries);
        });
        if (!is_free) ++m_result.in_use;
        if (!is_gone) return;
        if (!m_inventory.knows_images) return;
        for (const Digest& image : entry.images)
            if (--m_users[image] == 0) drop_image(image, std::max(entry.stamp.used, m_grace_began));
    }

    LocalTier& m_tier;
    const Disk& m_disk;
    Inventory m_inventory;
    PruneGoal m_goal;
    const std::chrono::system_clock::time_point m_grace_began = m_inventory.taken - k_prune_grace;
    std::map<Digest, std::uint64_t> m_users; ///< how many entries name an image
    Removal::Amount m_images{};              ///< all of them
    Pruned m_result;
};

} // namespace

Removal::Amount resolve(const Budget& budget, FileSystem& folder)
{
    Removal::Amount most{budget.files != 0 ? budget.files : k_default_files, budget.bytes};
    if (most.bytes != 0) return most;
    const auto disk = folder.disk_bytes("");
    // A file system in memory, or one behind FUSE, may say 0: it does not know.
    most.bytes = disk && *disk != 0 ? std::min(k_default_bytes, *disk / k_part_of_disk) : k_default_bytes;
    return most;
}

Result<Pruned> prune(LocalTier& tier, Inventory inventory, const PruneGoal& goal)
{
    if (!inventory.is_whole) {
        Pruned nothing;
        nothing.before = nothing.after = inventory.total();
        nothing.why_not = k_too_many;
        return nothing;
    }
    if (auto ok = read_images(tier, inventory, goal.deadline); !ok) return std::unexpected(ok.error());
    const bool knows_images = inventory.knows_images;
    const bool is_late = tier.disk().clock.steady() >= goal.deadline;
    Pruned pruned = Pruner(tier, std::move(inventory), goal).run();
    if (!knows_images) pruned.why_not = is_late ? k_too_many : k_unknown_entries;
    return pruned;
}

} // namespace warmgraph::store
