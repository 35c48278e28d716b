// Keeps a function's variants under their limit.
#pragma once

#include "tiers/local/disk.hpp"

namespace warmgraph::store {

/// Removes the least recently used entries of a function (by modification time, which a hit renews) while there are
/// more than `max_variants`; never `published`. Readers that hold one open are not disturbed.
[[nodiscard]] Result<Removal::Amount> evict(const Disk& disk, const FunctionKey& function, const Digest& published);

} // namespace warmgraph::store
