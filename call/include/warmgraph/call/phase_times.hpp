// Converts phases to the form that reports and usage files have.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/phases.hpp"

namespace warmgraph {

/// Returns each phase's name and time in milliseconds, in the order of the phases.
[[nodiscard]] inline std::vector<std::pair<std::string, double>> times_of(const Phases& phases)
{
    std::vector<std::pair<std::string, double>> times;
    for (const auto& [name, time] : phases.list()) times.emplace_back(name, time.count());
    return times;
}

} // namespace warmgraph
