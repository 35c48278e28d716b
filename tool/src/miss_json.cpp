#include "miss_json.hpp"

namespace warmgraph::tool {

Json miss_json(const store::Miss& miss)
{
    return {{"time", miss.time},
            {"host", miss.host},
            {"process", miss.process},
            {"policy", miss.policy},
            {"reason", miss.reason},
            {"end", to_string(miss.end)},
            {"calls", miss.calls},
            {"call", to_hex(miss.call)},
            {"variants", miss.variants},
            {"nearest", miss.nearest ? Json(to_hex(*miss.nearest)) : Json()},
            {"mismatches", differences_json(miss.differences)},
            {"more", miss.more},
            {"agree", miss.agree}};
}

Json misses_json(const std::vector<store::Miss>& misses)
{
    Json list = Json::array();
    for (const store::Miss& miss : misses) list.push_back(miss_json(miss));
    return list;
}

const store::Miss* refused_last(const store::Misses& misses) noexcept
{
    const bool is_refused = !misses.list.empty() && misses.list.front().end == store::MissEnd::refused;
    return is_refused ? &misses.list.front() : nullptr;
}

std::string refused_text(const store::FunctionUsage& usage)
{
    if (usage.refusals == 0) return {};
    std::string_view word;
    std::uint64_t most = 0;
    for (const auto& [what, tally] : usage.events.all()) {
        if (what.first != store::EventKind::refused || tally.count <= most) continue;
        word = what.second;
        most = tally.count;
    }
    return plural(usage.refusals, "call") + (word.empty() ? "" : fmt::format(": {}", word));
}

} // namespace warmgraph::tool
