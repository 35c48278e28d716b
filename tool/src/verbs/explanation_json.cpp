// The output of `warmgraph explain --json`; docs/json.md names the keys.
#include "miss_json.hpp"
#include "verbs/explanation.hpp"

namespace warmgraph::tool {

namespace {

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

Json runs_as_it_is(const Explanation& explanation)
{
    const store::Miss* const refused = refused_last(explanation.misses);
    if (refused == nullptr || explanation.variants != 0) return {};
    return {{"reason", refused->reason}, {"time", refused->time}, {"calls", refused->calls}};
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
    const auto elsewhere = [](const SiblingFunction& item) {
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
            {"runs_as_it_is", runs_as_it_is(explanation)},
            {"misses", misses_json(explanation.misses.list)},
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
