// Makes room: images that no entry names, then quarantine, then what was not used for longest.
#pragma once

#include <chrono>
#include <optional>

#include "upkeep/inventory.hpp"

namespace warmgraph::store {

/// A writer publishes images before the entry that names them, and touches those that are there already. What it touched
/// so long before the inventory was taken may go.
inline constexpr std::chrono::minutes k_prune_grace{10};

struct PruneGoal {
    Budget most;                                                        ///< that may stay; resolved
    std::optional<ArtifactKind> only{};                                 ///< whose part of it alone is kept
    std::optional<std::chrono::system_clock::time_point> used_before{}; ///< what was last used then goes in any case
    TimeLimit limit{};
    bool is_trial = false; ///< nothing is removed
};

/// The budget with its defaults filled in.
[[nodiscard]] Budget resolve(const Budget& budget, FileSystem& folder);

/// Nothing that a living process uses goes, nor what was used since the inventory was taken. Where it cannot be known which
/// images are needed, images stay, and Pruned::why_not says so. Of an inventory that is not whole, what was seen goes where
/// that alone is too much. REQUIRES: unless it is a
/// trial, the folder may be changed (Disk::may_remove).
[[nodiscard]] Result<Pruned> prune(LocalTier& tier, Inventory inventory, const PruneGoal& goal);

} // namespace warmgraph::store
