#include "report/misses.hpp"

#include "comparison.hpp"
#include "warmgraph/guards/json.hpp"

namespace warmgraph::tool {

namespace {

Json problem(const std::string& message)
{
    return {{"variant", nullptr}, {"agree", 0}, {"mismatches", Json::array()}, {"problem", message}};
}

Json to_json(const Comparison& comparison)
{
    Json mismatches = Json::array();
    for (const guards::Mismatch& mismatch : comparison.mismatches)
        mismatches.push_back(
            {{"fact", mismatch.fact}, {"recorded", mismatch.recorded}, {"now", mismatch.now}, {"cure", mismatch.cure}});
    return {{"variant", to_hex(comparison.variant)},
            {"agree", comparison.compared - comparison.mismatches.size()},
            {"mismatches", mismatches},
            {"problem", nullptr}};
}

Json judged(const std::string& facts, const std::vector<cachefmt::EntryHeader>& recorded)
{
    const auto now = guards::from_json(facts);
    if (!now) return problem(now.error().message);
    if (recorded.empty()) return problem("there is no entry to compare it with");
    return to_json(nearest(recorded, *now, {}));
}

} // namespace

Json last_misses(const store::FunctionUsage& usage, const std::vector<cachefmt::EntryHeader>& recorded)
{
    Json misses = Json::array();
    if (!usage.last_miss_json.empty()) misses.push_back(judged(usage.last_miss_json, recorded));
    return misses;
}

} // namespace warmgraph::tool
