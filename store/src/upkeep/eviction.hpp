// Keeps a function's variants under their limit.
#pragma once

#include "tiers/local/local_tier.hpp"

namespace warmgraph::store {

/// Removes the least recently used variants of a function (by modification time, which a hit renews) until
/// `max_variants` are left; never the variant `published`. A pair's entries with one recording id count as one variant.
/// Readers that hold a file open are not disturbed.
[[nodiscard]] Result<Removal::Amount> evict(LocalTier& tier, const EntryKey& published);

} // namespace warmgraph::store
