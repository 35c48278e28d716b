// Misses, refusals and differing facts as JSON, for `explain`, `ls`, `stats` and `report`. docs/json.md names the keys.
#pragma once

#include "context.hpp"
#include "warmgraph/store/function_usage.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph::tool {

/// `Fact` is guards::Mismatch or store::MissedFact.
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

/// The last miss if the function ran uncached because it cannot be recorded or replayed; else null.
[[nodiscard]] const store::Miss* refused_last(const store::Misses& misses) noexcept;
/// Returns "9 412 calls: host_random", with the most frequent reason; empty when no call ran uncached because of a
/// refusal.
[[nodiscard]] std::string refused_text(const store::FunctionUsage& usage);

} // namespace warmgraph::tool
