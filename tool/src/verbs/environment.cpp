#include "environment.hpp"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/bundle/compatibility.hpp"

namespace warmgraph::tool {

namespace {

using guards::EnvironmentFit;

std::uint64_t count_of(const std::vector<EnvironmentVerdict>& environments, auto&& is_wanted)
{
    std::uint64_t count = 0;
    for (const EnvironmentVerdict& one : environments) count += is_wanted(one) ? one.entries : 0;
    return count;
}

bool is_fit(const EnvironmentVerdict& one, EnvironmentFit fit)
{
    return one.problem.empty() && one.compared.fit == fit;
}

std::string line_of(const EnvironmentVerdict& one, const guards::Relaxation& relaxation)
{
    const std::string entries = plural(one.entries, "entry");
    if (!one.problem.empty())
        return fmt::format("environment key {} recorded ({}), not known here: {}", one.key, entries,
                           printable(one.problem));
    const std::string both = fmt::format("environment key {} recorded, {} here", one.key, one.here);
    const std::string fields = guards::fields_text(one.compared.fields);
    switch (one.compared.fit) {
    case EnvironmentFit::same: break;
    case EnvironmentFit::newer:
        return relaxation.driver == guards::VersionRule::same_or_newer
                   ? fmt::format("{}: it fits ({}), the driver is newer: {}", both, entries, fields)
                   : fmt::format("{}: it fits if a newer driver is accepted ({}): {}", both, entries, fields);
    case EnvironmentFit::differs: return fmt::format("{}: nothing fits ({}): {}", both, entries, fields);
    }
    return one.key == one.here ? fmt::format("environment key {} fits: it is this machine's ({})", one.key, entries)
                               : fmt::format("{}: it fits ({})", both, entries);
}

std::string line_of_several(const std::vector<EnvironmentVerdict>& environments)
{
    std::set<std::string> here, fields;
    for (const EnvironmentVerdict& one : environments) {
        if (!one.here.empty()) here.insert(one.here);
        if (is_fit(one, EnvironmentFit::differs))
            for (const guards::Mismatch& field : one.compared.fields) fields.insert(printable(field.fact));
    }
    const auto all = count_of(environments, [](const auto&) { return true; });
    const auto of = [&](EnvironmentFit fit) {
        return count_of(environments, [fit](const auto& one) { return is_fit(one, fit); });
    };
    const auto unknown = count_of(environments, [](const auto& one) { return !one.problem.empty(); });
    std::vector<std::string> parts{fmt::format("{} of {} fit", of(EnvironmentFit::same), plural(all, "entry"))};
    if (of(EnvironmentFit::newer) > 0)
        parts.push_back(fmt::format("{} if a newer driver is accepted", of(EnvironmentFit::newer)));
    if (of(EnvironmentFit::differs) > 0)
        parts.push_back(
            fmt::format("{} of other machines differ in {}", of(EnvironmentFit::differs), fmt::join(fields, ", ")));
    if (unknown > 0) parts.push_back(fmt::format("{} need a device that cannot be opened here", unknown));
    return fmt::format("environment key {} here: {}",
                       here.empty() ? "unknown" : fmt::format("{}", fmt::join(here, ", ")), fmt::join(parts, ", "));
}

std::string_view to_string(EnvironmentFit fit) noexcept
{
    switch (fit) {
    case EnvironmentFit::same: return "same";
    case EnvironmentFit::newer: return "newer";
    case EnvironmentFit::differs: break;
    }
    return "differs";
}

} // namespace

void Environments::add(const cachefmt::Guards& guards)
{
    const std::string key = guards::environment_key(guards.facts);
    if (key.empty()) return;
    EnvironmentGroup& recorded = m_recorded[{bundle::device_of(guards), key}];
    if (recorded.entries++ == 0) recorded.guards = guards;
}

std::vector<EnvironmentVerdict> Environments::judge(ThisMachine& machine) const
{
    std::vector<EnvironmentVerdict> judged;
    for (const auto& [place, recorded] : m_recorded) {
        const auto here = machine.facts_for(recorded.guards);
        EnvironmentVerdict one{.key = place.second, .here = {}, .problem = {}, .entries = recorded.entries};
        if (const auto problem = machine.problems().find(place.first); problem != machine.problems().end())
            one.problem = problem->second;
        else
            one.here = guards::environment_key(here);
        one.compared = guards::compare_environments(recorded.guards.facts, here);
        judged.push_back(std::move(one));
    }
    return judged;
}

std::string environment_line(const std::vector<EnvironmentVerdict>& environments, const guards::Relaxation& relaxation)
{
    if (environments.empty()) return {};
    return environments.size() == 1 ? line_of(environments.front(), relaxation) : line_of_several(environments);
}

std::string dead_because(const std::vector<EnvironmentVerdict>& environments)
{
    const bool is_dead = !environments.empty() && std::ranges::all_of(environments, [](const EnvironmentVerdict& one) {
        return is_fit(one, EnvironmentFit::differs);
    });
    return is_dead ? guards::fields_text(environments.front().compared.fields) : std::string{};
}

Json to_json(const std::vector<EnvironmentVerdict>& environments)
{
    Json list = Json::array();
    for (const EnvironmentVerdict& one : environments) {
        Json fields = Json::array();
        for (const guards::Mismatch& field : one.compared.fields)
            fields.push_back({{"fact", field.fact}, {"recorded", field.recorded}, {"here", field.now}});
        list.push_back({{"key", one.key},
                        {"here", one.here.empty() ? Json() : Json(one.here)},
                        {"entries", one.entries},
                        {"fit", one.problem.empty() ? Json(to_string(one.compared.fit)) : Json()},
                        {"fields", fields}});
    }
    return list;
}

} // namespace warmgraph::tool
