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

} // namespace warmgraph::tool
