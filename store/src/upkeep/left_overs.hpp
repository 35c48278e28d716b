// Removes left-overs of dead writers from every folder of the library.
#pragma once

#include "tiers/local/disk.hpp"

namespace warmgraph::store {

/// Removes temporaries of dead writers and load marks that no longer count. Stops after `limit`; the next call
/// continues. Returns the number of files removed. Best effort. REQUIRES: the folder is marked and may be written.
std::uint64_t sweep_left_overs(const Disk& disk, std::chrono::nanoseconds limit);

} // namespace warmgraph::store
