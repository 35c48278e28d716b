// What dead writers left behind, in every folder that the library makes.
#pragma once

#include "tiers/local/disk.hpp"

namespace warmgraph::store {

/// Removes temporaries of dead writers, and marks of loads that say nothing any more, for at most `limit` of time: the next one goes on. Returns how many went. Best
/// effort. REQUIRES: the folder is marked and may be written.
std::uint64_t sweep_left_overs(const Disk& disk, std::chrono::nanoseconds limit);

} // namespace warmgraph::store
