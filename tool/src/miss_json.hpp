// Misses, and facts that differ, as `explain` and `report` print them: docs/command.md names the keys.
#pragma once

#include "context.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::tool {

/// Of guards::Mismatch or store::MissedFact.
template <class Fact>
[[nodiscard]] Json differences_json(const std::vector<Fact>& differences)
{
    Json list = Json::array();
    for (const auto& [fact, recorded, now, cure] : differences)
        list.push_back({{"fact", fact}, {"recorded", recorded}, {"now", now}, {"cure", cure}});
    return list;
}

[[nodiscard]] Json miss_json(const store::Miss& miss);
[[nodiscard]] Json misses_json(const std::vector<store::Miss>& misses);

} // namespace warmgraph::tool
