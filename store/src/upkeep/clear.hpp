// Executes the plan of clear_plan.hpp.
#pragma once

#include "tiers/local/local_tier.hpp"
#include "warmgraph/store/upkeep.hpp"

namespace warmgraph::store {

/// REQUIRES: the disk's may_remove holds.
[[nodiscard]] Result<Removal> clear(LocalTier& tier, const ClearRequest& request);

} // namespace warmgraph::store
