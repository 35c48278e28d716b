// Keeps the folder within its budget. The work is done when a process writes.
#pragma once

#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include "upkeep/prune.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::store {

/// Thread-safe. Measures the folder at the first publish, and again when this process's writes may have filled it.
class BudgetKeeper {
public:
    using OnEvicted = std::function<void(const Removal::Amount& entries)>;

    explicit BudgetKeeper(LocalTier& tier) : m_tier(tier) {}
    BudgetKeeper(const BudgetKeeper&) = delete;
    BudgetKeeper& operator=(const BudgetKeeper&) = delete;
    ~BudgetKeeper() { end(); }

    /// Call this after something was published. Makes room if the folder is over its budget, and logs that. Blocks the
    /// writer for at most 0.1 s; longer work continues in a thread. Best effort: one warning says why the budget is not
    /// kept.
    void keep(const OnEvicted& on_evicted) noexcept;
    /// Stops and ends that thread.
    void end() noexcept;
    /// Called when the store closes: removes images of entries that this process replaced or evicted, if old enough.
    [[nodiscard]] Result<void> sweep_unused();
    /// See LocalStore::prune; a trial removes nothing.
    [[nodiscard]] Result<PruneResult> prune(const PruneRequest& request, bool is_trial);

    [[nodiscard]] const Budget& most(); ///< the budget with its defaults filled in

private:
    /// Returns false when the limit ended the work. REQUIRES: m_mutex is held.
    [[nodiscard]] Result<bool> keep_within(const TimeLimit& limit, const OnEvicted& on_evicted);
    void continue_in_thread(const OnEvicted& on_evicted);
    /// Warns once in a process.
    void warn_where_over(const PruneResult& pruned);
    [[nodiscard]] Result<PruneResult> prune_locked(Inventory inventory, const PruneGoal& goal);
    /// Whether so much was written that a limit may be exceeded.
    [[nodiscard]] bool is_time() const;
    /// Computes the next time for is_time(). `kinds`: the bytes of the kinds that have a limit.
    void look_again(const Removal::Amount& total, const KindBytes& kinds);

    LocalTier& m_tier;
    std::mutex m_mutex;
    Removal::Amount m_next_look{}; ///< guarded by m_mutex: look again when this process has written this much
    KindBytes m_next_looks{};      ///< like m_next_look, for each kind
    bool m_has_warned = false;     ///< guarded by m_mutex
    std::once_flag m_is_resolved;
    Budget m_most{}; ///< set once
    std::mutex m_thread_mutex;
    std::jthread m_thread; ///< guarded by m_thread_mutex, as the members below; started once
    bool m_is_ending = false;
    std::optional<ExitHook> m_end_thread; ///< made with m_thread
};

} // namespace warmgraph::store
