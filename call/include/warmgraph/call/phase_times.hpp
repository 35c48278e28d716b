// Phases in the form of reports and usage files.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/phases.hpp"

namespace warmgraph {

/// Returns the times in milliseconds, in order.
[[nodiscard]] inline std::vector<std::pair<std::string, double>> times_of(const Phases& phases)
{
    std::vector<std::pair<std::string, double>> times;
    for (const auto& [name, time] : phases.list()) times.emplace_back(name, time.count());
    return times;
}

} // namespace warmgraph
