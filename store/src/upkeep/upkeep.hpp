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
    [[nodiscard]] Result<std::vector<Damage>> check(const ArtifactVerifier& verifier) const;
    [[nodiscard]] Result<std::vector<Damage>> repair(const ArtifactVerifier& verifier);
    [[nodiscard]] Result<Removal> plan_clear(const ClearRequest& request) const;
    [[nodiscard]] Result<Removal> clear(const ClearRequest& request);
    [[nodiscard]] Result<Pruned> plan_prune(const PruneRequest& request);
    [[nodiscard]] Result<Pruned> prune(const PruneRequest& request);
    [[nodiscard]] Budget budget();

    /// Within the writer's time: keeps the limits behind it, the first time also what dead writers left. Best effort,
    /// the next writer makes up for it. Returns the entries of the function that gave way to the new one;
    /// `for_the_budget` hears of those that went for the folder's budget, in a thread of the upkeep's where that takes long.
    Removal::Amount after_publish(const EntryKey& key, const BudgetKeeper::OnEvicted& for_the_budget) noexcept;
    /// Of that, the budget alone.
    void make_room() noexcept;
    /// The last work: what dead writers left, and images that this process's entries left without use go. Best effort.
    void before_close() noexcept;

private:
    /// Not when the folder is opened: a first call would wait for the listing of every folder (measured: 12 us each, and
    /// images have 256).
    void sweep_once();

    LocalTier& m_tier;
    BudgetKeeper m_budget;
    std::atomic<bool> m_has_swept = false;
    std::atomic<bool> m_has_evicted = false;
};

} // namespace warmgraph::store
