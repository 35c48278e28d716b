// Keeps the folder within its budget, in the time of those who write.
#pragma once

#include <mutex>

#include "upkeep/prune.hpp"

namespace warmgraph::store {

/// Thread-safe. Looks at the folder at the first publish, and then when what this process wrote may have filled it.
class BudgetKeeper {
public:
    explicit BudgetKeeper(LocalTier& tier) : m_tier(tier) {}

    /// After something was published: makes room where there is too much. Returns the entries that went. Best effort.
    [[nodiscard]] Result<Removal::Amount> keep();
    /// At the end: images whose entries this process replaced or evicted go now, where they are old enough.
    [[nodiscard]] Result<void> sweep_unused();
    /// As LocalStore says.
    [[nodiscard]] Result<Pruned> prune(const PruneRequest& request, bool is_trial);

    [[nodiscard]] const Budget& most(); ///< that may stay

private:
    [[nodiscard]] Result<Pruned> prune_locked(Inventory inventory, const PruneGoal& goal);
    /// Was so much written that something may be over its part?
    [[nodiscard]] bool is_time() const;
    /// When that will be. `kinds`: what those take that have a part.
    void look_again(const Removal::Amount& total, const KindBytes& kinds);

    LocalTier& m_tier;
    std::mutex m_mutex;
    Removal::Amount m_next_look{}; ///< guarded by m_mutex: what this process has written by then
    KindBytes m_next_looks{};      ///< the same of kinds
    std::once_flag m_is_resolved;
    Budget m_most{}; ///< set once
};

} // namespace warmgraph::store
