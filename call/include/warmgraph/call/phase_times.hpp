// Phases as reports and usage files have them.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "warmgraph/base/phases.hpp"

namespace warmgraph {

/// In milliseconds, in order.
[[nodiscard]] inline std::vector<std::pair<std::string, double>> times_of(const Phases& phases)
{
    std::vector<std::pair<std::string, double>> times;
    for (const auto& [name, time] : phases.list()) times.emplace_back(name, time.count());
    return times;
}

} // namespace warmgraph
