// What `warmgraph explain --json` prints; docs/command.md names the keys.
#include "verbs/explanation.hpp"

namespace warmgraph::tool {

namespace {

template <class Fact>
Json differences_json(const std::vector<Fact>& differences)
{
    Json list = Json::array();
    for (const auto& [fact, recorded, now, cure] : differences)
        list.push_back({{"fact", fact}, {"recorded", recorded}, {"now", now}, {"cure", cure}});
    return list;
}

Json to_json(const char* source, const Comparison& comparison)
{
    Json item{{"against", source},
              {"variant", to_hex(comparison.variant)},
              {"mismatches", differences_json(comparison.mismatches)},
              {"agree", comparison.compared - comparison.mismatches.size()}};
    if (comparison.tombstone)
        item["tombstone"] = {{"reason", comparison.tombstone->reason},
                             {"difference", comparison.tombstone->difference}};
    return item;
}

Json to_json(const store::Miss& miss)
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

template <class Items, class Convert>
Json list_of(const Items& items, Convert convert)
{
    Json list = Json::array();
    for (const auto& item : items) list.push_back(convert(item));
    return list;
}

} // namespace

Json to_json(const Explanation& explanation)
{
    const auto optional = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    const auto elsewhere = [](const Elsewhere& item) {
        return Json{{"model_info", item.key.model_info},
                    {"rank", item.key.rank},
                    {"variants", item.variants},
                    {"differences", differences_json(item.differences)}};
    };
    return {{"model_info", explanation.key.model_info},
            {"rank", explanation.key.rank},
            {"function", explanation.key.function},
            {"would", name_of(explanation.verdict)},
            {"variants", explanation.variants},
            {"comparisons",
             list_of(explanation.comparisons, [](const auto& item) { return to_json(item.first, item.second); })},
            {"misses", list_of(explanation.misses.list, [](const store::Miss& miss) { return to_json(miss); })},
            {"elsewhere", list_of(explanation.elsewhere, elsewhere)},
            {"unusable", list_of(explanation.unusable,
                                 [](const auto& item) {
                                     return Json{{"variant", to_hex(item.first)}, {"error", item.second.message}};
                                 })},
            {"binaries_not_here", explanation.binary_problems},
            {"device_problem", optional(explanation.device_problem)},
            {"last_miss_problem", optional(explanation.last_miss_problem)}};
}

} // namespace warmgraph::tool
