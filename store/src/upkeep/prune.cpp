#include "upkeep/prune.hpp"

#include <algorithm>

#include "tiers/local/own_names.hpp"
#include "warmgraph/base/log.hpp"

namespace warmgraph::store {
namespace {

constexpr std::uint64_t k_default_bytes = 8ULL << 30;
constexpr std::uint64_t k_default_files = 100'000;
constexpr std::uint64_t k_part_of_disk = 10;

constexpr std::string_view k_too_many = "there are too many entries to scan now: run `warmgraph prune`";
constexpr std::string_view k_unknown_entries =
    "images are kept, because some entries cannot be read here (written by a newer warmgraph, or by another user), and "
    "the images that they need are not known";

class Pruner {
public:
    Pruner(LocalTier& tier, Inventory inventory, const PruneGoal& goal)
        : m_tier(tier), m_disk(tier.disk()), m_inventory(std::move(inventory)), m_goal(goal)
    {
        m_result.before = m_result.after = goal.only ? m_inventory.total(*goal.only) : m_inventory.total();
        for (const ArtifactKind kind : kinds_for(KindUse::budgeted)) m_left[kind] = m_inventory.total(kind).bytes;
        std::ranges::sort(m_inventory.quarantined, {}, [](const StoredFile& file) { return file.stamp.used; });
        for (const InventoryEntry& entry : m_inventory.entries)
            for (const Digest& image : entry.images) ++m_users[image];
        for (const auto& [digest, stamp] : m_inventory.images) m_images += {1, stamp.size};
    }

    PruneResult run()
    {
        if (m_inventory.knows_images && is_asked(ArtifactKind::entries)) {
            drop_unused_entries();
            drop_unused_images();
        }
        // The least recently used first: in kinds over their own limit, then in all kinds over the common limit.
        std::vector<Candidate> candidates = this->candidates();
        for (Candidate& candidate : candidates)
            if (is_too_old(candidate.used) || is_over(candidate.kind)) try_drop(candidate);
        if (!m_goal.only)
            for (const StoredFile& file : m_inventory.quarantined)
                if (is_too_old(file.stamp.used) || is_over()) drop_quarantined(file);
        for (Candidate& candidate : candidates)
            if (!candidate.was_tried && is_over()) try_drop(candidate);
        m_result.left = m_left;
        return std::move(m_result);
    }

private:
    using Time = std::chrono::system_clock::time_point;
    /// A unit that may be removed: an entry, all entries of a pair, or an artifact.
    struct Candidate {
        ArtifactKind kind;
        Time used; ///< the latest use of its files
        std::vector<const InventoryEntry*> entries{};
        const StoredFile* artifact = nullptr;
        bool was_tried = false;
    };

    [[nodiscard]] bool is_asked(ArtifactKind kind) const noexcept { return !m_goal.only || *m_goal.only == kind; }
    [[nodiscard]] std::vector<Candidate> candidates() const
    {
        std::vector<Candidate> candidates;
        if (is_asked(ArtifactKind::entries))
            for (const InventoryEntry& entry : m_inventory.entries) {
                auto beside = m_pairs.beside(entry);
                if (beside.front() != &entry) continue; // a pair's entries are added with its first entry
                const auto used = [](const InventoryEntry* one) { return one->stamp.used; };
                candidates.push_back(
                    {ArtifactKind::entries, used(*std::ranges::max_element(beside, {}, used)), beside});
            }
        for (const auto& [kind, file] : m_inventory.artifacts)
            if (is_asked(kind)) candidates.push_back({kind, file.stamp.used, {}, &file});
        std::ranges::stable_sort(candidates, {}, [](const Candidate& candidate) {
            return std::pair(row_of(candidate.kind).goes_last, candidate.used);
        });
        return candidates;
    }
    void try_drop(Candidate& candidate)
    {
        candidate.was_tried = true;
        if (candidate.artifact != nullptr)
            remove(candidate.kind, candidate.artifact->path, candidate.artifact->stamp,
                   m_result.removed.of(candidate.kind));
        else // a process that uses the backward also uses the forward: when the forward stays, all stay
            for (const InventoryEntry* const entry : candidate.entries)
                if (!drop(*entry)) return;
    }
    /// Images that must stay are subtracted from the goal: else all entries would be removed without reaching the goal.
    [[nodiscard]] Removal::Amount fixed() const noexcept
    {
        return m_inventory.knows_images ? Removal::Amount{} : m_images;
    }
    [[nodiscard]] bool is_over() const noexcept
    {
        return !m_goal.only && (m_result.after.bytes - fixed().bytes > m_goal.most.bytes ||
                                m_result.after.files - fixed().files > m_goal.most.files);
    }
    [[nodiscard]] bool is_over(ArtifactKind kind) const
    {
        const auto most = m_goal.most.kinds.find(kind);
        if (most == m_goal.most.kinds.end()) return false;
        return m_left.at(kind) - (kind == ArtifactKind::entries ? fixed().bytes : 0) > most->second;
    }
    [[nodiscard]] bool is_too_old(Time used) const noexcept { return m_goal.used_before && used < *m_goal.used_before; }
    /// Returns false when the file stays: it was used or replaced meanwhile, or cannot be removed.
    bool remove(std::optional<ArtifactKind> kind, const Path& path, const Stamp& stamp, Removal::Amount& counted)
    {
        const auto now = m_disk.files.info(path);
        if (!now || !*now || stamp_of(**now) != stamp) return false;
        if (!m_goal.is_trial)
            if (const auto gone = m_disk.files.remove(path); !gone) {
                log().debug("{} is kept: {}", path.string(), gone.error().message);
                return false;
            }
        counted += {1, stamp.size};
        --m_result.after.files;
        m_result.after.bytes -= stamp.size;
        if (kind) m_left[*kind] -= stamp.size;
        return true;
    }
    /// Removes an image unless it was used since: a writer publishes or touches an entry's images first.
    void drop_image(const Digest& digest, std::chrono::system_clock::time_point since)
    {
        const auto image = m_inventory.images.find(digest);
        if (image == m_inventory.images.end() || image->second.used > since) return;
        remove(ArtifactKind::entries, m_disk.layout.image(digest), image->second,
               m_result.removed.of(ArtifactKind::images));
    }
    /// Removes entries with forward and backward in one graph, and older pairs that lack a part.
    void drop_unused_entries()
    {
        for (const InventoryEntry& entry : m_inventory.entries)
            if (entry.is_joined || (!m_pairs.is_whole(entry) && entry.stamp.used < m_grace_began))
                static_cast<void>(drop(entry));
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
        if (!remove(std::nullopt, file.path, file.stamp, is_reason_of ? reasons : m_result.removed.quarantined)) return;
        m_result.removed.quarantined.bytes += reasons.bytes;
    }
    /// Returns false when the entry stays.
    bool drop(const InventoryEntry& entry)
    {
        bool is_gone = false;
        const bool is_free = m_tier.leases().unless_taken(entry.key, [&] {
            is_gone = remove(ArtifactKind::entries, m_disk.layout.entry(entry.key), entry.stamp,
                             m_result.removed.of(ArtifactKind::entries));
        });
        if (!is_free) ++m_result.in_use;
        if (!is_gone || !m_inventory.knows_images) return is_gone;
        for (const Digest& image : entry.images)
            if (--m_users[image] == 0) drop_image(image, std::max(entry.stamp.used, m_grace_began));
        return true;
    }

    LocalTier& m_tier;
    const Disk& m_disk;
    Inventory m_inventory;
    const Pairs m_pairs{m_inventory.entries};
    PruneGoal m_goal;
    const std::chrono::system_clock::time_point m_grace_began = m_inventory.taken - k_prune_grace;
    std::map<Digest, std::uint64_t> m_users; ///< number of entries that name an image
    Removal::Amount m_images{};              ///< total of all images
    KindBytes m_left;                        ///< bytes left, of every kind
    PruneResult m_result;
};

} // namespace

Budget resolve(const Budget& budget, FileSystem& folder)
{
    Budget most = budget;
    if (most.files == 0) most.files = k_default_files;
    if (most.bytes != 0) return most;
    const auto disk = folder.disk_bytes("");
    // 0 means unknown, e.g. a file system in memory or behind FUSE.
    most.bytes = disk && *disk != 0 ? std::min(k_default_bytes, *disk / k_part_of_disk) : k_default_bytes;
    return most;
}

Result<PruneResult> prune(LocalTier& tier, Inventory inventory, const PruneGoal& goal)
{
    const bool needs_images = !goal.only || *goal.only == ArtifactKind::entries;
    if (needs_images && inventory.is_whole)
        if (auto ok = read_images(tier, inventory, goal.limit); !ok) return std::unexpected(ok.error());
    const bool knows_images = inventory.knows_images || !needs_images;
    const bool is_whole = inventory.is_whole;
    const bool is_late = !is_whole || goal.limit.is_over(tier.disk().clock);
    PruneResult pruned = Pruner(tier, std::move(inventory), goal).run();
    if (!is_whole || !knows_images) pruned.why_not = is_late ? k_too_many : k_unknown_entries;
    return pruned;
}

} // namespace warmgraph::store
