// Keeps the folder within its budget, in the time of those who write.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "upkeep/prune.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::store {

/// Thread-safe. Looks at the folder at the first publish, and then when what this process wrote may have filled it.
class BudgetKeeper {
public:
    using OnEvicted = std::function<void(const Removal::Amount& entries)>;

    explicit BudgetKeeper(LocalTier& tier) : m_tier(tier) {}
    BudgetKeeper(const BudgetKeeper&) = delete;
    BudgetKeeper& operator=(const BudgetKeeper&) = delete;
    ~BudgetKeeper() { end(); }

    /// After something was published: makes room where there is too much, and says so. A tenth of a second is the writer's
    /// to wait; what takes longer goes on in a thread of its own. Best effort: where a budget is not kept all the same, one
    /// line at warn says why.
    void keep(const OnEvicted& on_evicted) noexcept;
    /// Ends that thread, wherever it is.
    void end() noexcept;
    /// At the end: images whose entries this process replaced or evicted go now, where they are old enough.
    [[nodiscard]] Result<void> sweep_unused();
    /// As LocalStore says.
    [[nodiscard]] Result<Pruned> prune(const PruneRequest& request, bool is_trial);

    [[nodiscard]] const Budget& most(); ///< that may stay

private:
    /// False: the limit ended it. REQUIRES: m_mutex is held.
    [[nodiscard]] Result<bool> keep_within(const TimeLimit& limit, const OnEvicted& on_evicted);
    void go_on_in_thread(const OnEvicted& on_evicted);
    /// Once in a process.
    void warn_where_over(const Pruned& pruned);
    [[nodiscard]] Result<Pruned> prune_locked(Inventory inventory, const PruneGoal& goal);
    /// Was so much written that something may be over its part?
    [[nodiscard]] bool is_time() const;
    /// When that will be. `kinds`: what those take that have a part.
    void look_again(const Removal::Amount& total, const KindBytes& kinds);

    LocalTier& m_tier;
    std::mutex m_mutex;
    Removal::Amount m_next_look{}; ///< guarded by m_mutex: what this process has written by then
    KindBytes m_next_looks{};      ///< the same of kinds
    bool m_has_warned = false;     ///< guarded by m_mutex
    std::once_flag m_is_resolved;
    Budget m_most{}; ///< set once
    std::mutex m_thread_mutex;
    std::jthread m_thread; ///< guarded by m_thread_mutex, as what follows; started once
    bool m_is_ending = false;
    std::optional<ExitHook> m_end_thread; ///< made with it
};

} // namespace warmgraph::store
