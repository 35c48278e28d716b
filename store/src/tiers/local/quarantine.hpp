// Moves files that failed verification aside, each with a reason, so that they can be studied and are never read again.
#pragma once

#include "tiers/local/disk.hpp"

namespace warmgraph::store {

inline constexpr std::size_t k_max_quarantined = 64; ///< files kept, each with its reason; the oldest are removed first

/// Moves `path` to <root>/quarantine/<uuid>-<name>, unless another file replaced it since it was read (`judged` is the
/// stamp from before the read). Best effort: a file that cannot be moved stays, and is refused again next time.
void quarantine(const Disk& disk, const Path& path, const Stamp& judged, const Error& reason);

} // namespace warmgraph::store
