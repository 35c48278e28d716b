// Work on the whole cache folder: check, repair, clear, and keep the limits.
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
    /// `tier` must outlive this object.
    explicit Upkeep(LocalTier& tier) : m_tier(tier), m_budget(tier) {}

    // See LocalStore.
    [[nodiscard]] Result<std::vector<Damage>> check(const ArtifactVerifier& verifier) const;
    [[nodiscard]] Result<std::vector<Damage>> repair(const ArtifactVerifier& verifier);
    [[nodiscard]] Result<Removal> plan_clear(const ClearRequest& request) const;
    [[nodiscard]] Result<Removal> clear(const ClearRequest& request);
    [[nodiscard]] Result<PruneResult> plan_prune(const PruneRequest& request);
    [[nodiscard]] Result<PruneResult> prune(const PruneRequest& request);
    [[nodiscard]] Budget budget();

    /// Keeps the limits after a publish, within the writer's time; the first call also removes left-overs of dead
    /// writers. Best effort: the next writer continues the work. Returns the function's entries that were evicted for
    /// the new entry. `for_the_budget` gets the entries that were evicted for the folder's budget, maybe in a thread of
    /// Upkeep.
    Removal::Amount after_publish(const EntryKey& key, const BudgetKeeper::OnEvicted& for_the_budget) noexcept;
    /// Keeps the budget, and does nothing else.
    void make_room() noexcept;
    /// The last work before closing: removes dead writers' left-overs and newly unused images. Best effort.
    void before_close() noexcept;

private:
    /// Runs after a publish and not when the folder is opened: a first call would wait for the listing of every folder
    /// (measured: 12 us each, and images have 256).
    void sweep_once();

    LocalTier& m_tier;
    BudgetKeeper m_budget;
    std::atomic<bool> m_has_swept = false;
    std::atomic<bool> m_has_evicted = false;
};

} // namespace warmgraph::store
