// What is done to the cache folder as a whole: look at it, cure it, clear it, keep it within its limits.
#pragma once

#include <atomic>
#include <vector>

#include "tiers/local/local_tier.hpp"
#include "upkeep/budget.hpp"
#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::store {

/// Thread-safe.
class Upkeep {
public:
    /// `tier` must outlive it.
    explicit Upkeep(LocalTier& tier) : m_tier(tier), m_budget(tier) {}

    // As LocalStore says.
    [[nodiscard]] Result<std::vector<Damage>> check() const;
    [[nodiscard]] Result<std::vector<Damage>> repair();
    [[nodiscard]] Result<Removal> plan_clear(const ClearRequest& request) const;
    [[nodiscard]] Result<Removal> clear(const ClearRequest& request);
    [[nodiscard]] Result<Pruned> plan_prune(const PruneRequest& request);
    [[nodiscard]] Result<Pruned> prune(const PruneRequest& request);
    [[nodiscard]] Budget budget();

    /// When the folder was opened for writing: what dead writers left goes, in every folder. Best effort.
    void after_open() noexcept;

    /// Entries that gave way to the new one: for the limit of variants, and for the folder's budget.
    struct Evicted {
        Removal::Amount variants{}, budget{};
    };
    /// Within the writer's time: keeps the limits behind it. Best effort, the next writer makes up for it.
    Evicted after_publish(const EntryKey& key) noexcept;
    /// The last work: images that this process's entries left without use go. Best effort.
    void before_close() noexcept;

private:
    LocalTier& m_tier;
    BudgetKeeper m_budget;
    std::atomic<bool> m_has_evicted = false;
};

} // namespace warmgraph::store
