// How often a function was hit, missed, recorded and refused. Advisory: nothing depends on it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/store/events.hpp"

namespace warmgraph::store {

/// Where the time of a first call went: phases in order, with milliseconds of the host.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

struct FunctionUsage {
    std::uint64_t hits = 0, misses = 0, recordings = 0, refusals = 0;
    /// Recordings that were refused for device code which was loaded in a pause, and those of them that a later process
    /// made good by not pausing.
    std::uint64_t code_missed = 0, code_kept = 0;
    double saved_ms = 0;
    std::string last_used{}; ///< ISO 8601
    Events events{};
    PhaseTimes cold{}; ///< of the last call that was recorded, without publishing; empty: not known
    PhaseTimes warm{}; ///< of the last load that became a hit, without its first launch; empty: not known
};

} // namespace warmgraph::store
