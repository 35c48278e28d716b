// A program's own store (warmgraph::Tier) as a tier of a cache.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/remote/attach.hpp"
#include "warmgraph/store/tier.hpp"
#include "warmgraph/tier.hpp"

namespace warmgraph {

/// Passes the calls on under the names as text (store::to_text). An exception becomes io_failed. An answer of another
/// length than its size says is `corrupt`, and nothing of it is used.
[[nodiscard]] std::unique_ptr<store::Tier> user_backend(std::shared_ptr<Tier> tier, std::string label);

/// Checks CacheOptions::tiers. invalid_argument: a label that is no name or is taken, no tier.
[[nodiscard]] Result<void> check_tiers(const std::vector<TierOptions>& tiers);

/// Adds each tier to the store below what is there, in this order, as remote::attach does.
[[nodiscard]] std::vector<std::shared_ptr<remote::RemoteTier>> attach_tiers(store::LocalStore& store,
                                                                            const std::vector<TierOptions>& tiers,
                                                                            const cachefmt::Trust& trust);

} // namespace warmgraph
