// How often a function was hit, missed, recorded and refused. Advisory: the library works without it.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "warmgraph/store/events.hpp"

namespace warmgraph::store {

/// The phases of a first call, in order, with the host's time in milliseconds.
using PhaseTimes = std::vector<std::pair<std::string, double>>;

struct FunctionUsage {
    std::uint64_t hits = 0, misses = 0, recordings = 0, refusals = 0;
    /// code_missed: recordings that were refused because device code was loaded in a pause. code_kept: recordings among
    /// these that a later process could make because it did not pause.
    std::uint64_t code_missed = 0, code_kept = 0;
    double saved_ms = 0;
    std::string last_used{}; ///< ISO 8601
    Events events{};
    PhaseTimes cold{}; ///< phases of the last recorded call, without the time of publishing; empty: not known
    PhaseTimes warm{}; ///< phases of the last load that became a hit, without its first launch; empty: not known
};

} // namespace warmgraph::store
