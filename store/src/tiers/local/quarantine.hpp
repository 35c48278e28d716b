// What failed verification is moved aside, with the reason beside it, so that it can be studied and is never read
// again.
#pragma once

#include "tiers/local/disk.hpp"

namespace warmgraph::store {

inline constexpr std::size_t k_max_quarantined = 64; ///< files kept, with their reasons; the oldest go first

/// Moves `path` to <root>/quarantine/<uuid>-<name>, unless it is no longer the file that was judged (`judged` is its
/// stamp from before it was read): somebody may have published a good one meanwhile. Best effort: a file that cannot
/// be moved stays, and is refused again next time.
void quarantine(const Disk& disk, const Path& path, const Stamp& judged, const Error& reason);

} // namespace warmgraph::store
