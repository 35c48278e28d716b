// Makes room: removes unused images, then quarantine, then the least recently used objects.
#pragma once

#include <chrono>
#include <optional>

#include "upkeep/inventory.hpp"

namespace warmgraph::store {

/// A writer publishes images, or touches existing images, before the entry that names them. An unused image that was
/// touched this long before the inventory may be removed.
inline constexpr std::chrono::minutes k_prune_grace{10};

struct PruneGoal {
    Budget most;                        ///< the resolved budget
    std::optional<ArtifactKind> only{}; ///< keep only this kind within its limit
    /// Objects last used before this time are removed in any case
    std::optional<std::chrono::system_clock::time_point> used_before{};
    TimeLimit limit{};
    bool is_trial = false; ///< true: nothing is removed
};

/// The budget with its defaults filled in.
[[nodiscard]] Budget resolve(const Budget& budget, FileSystem& folder);

/// Keeps everything that a living process uses, or that was used since the inventory was taken. Keeps all images when
/// the needed ones cannot be known; PruneResult::why_not says so. From an incomplete inventory, objects are removed only if
/// the sum of the inventory exceeds the budget. REQUIRES: a trial, or a folder that may be changed (Disk::may_remove).
[[nodiscard]] Result<PruneResult> prune(LocalTier& tier, Inventory inventory, const PruneGoal& goal);

} // namespace warmgraph::store
