// `warmgraph doctor`: shows this machine's devices and libraries, and problems with their cures.
#include <algorithm>

#include <fmt/ranges.h>

#include "commands.hpp"
#include "doctor_report.hpp"
#include "warmgraph/base/printable.hpp"

namespace warmgraph::tool {

namespace {

/// Compares the environments of the folder's entries with this machine's environment. If there are no entries,
/// describes only this machine's environment.
std::string first_line(const Report& report, const std::vector<EnvironmentVerdict>& environments)
{
    if (!environments.empty()) return environment_line(environments);
    std::vector<std::string> keys;
    for (const auto& [device, key] : report.environment_keys) keys.push_back(fmt::format("{} ({})", key, device));
    return keys.empty() ? "environment key: none, no device can be opened"
                        : fmt::format("environment key {}", fmt::join(keys, ", "));
}

std::string to_text(const Context& context, const Report& report, const std::string& environment)
{
    std::string text = environment + "\n";
    for (const auto& [title, lines] : report.sections) {
        text += context.style.paint(Colour::bold, title) + "\n";
        std::size_t width = 0;
        for (const auto& [name, value] : lines) width = std::max(width, name.size());
        for (const auto& [name, value] : lines)
            text += fmt::format("  {:<{}}  {}\n", name, width, printable(value, 400));
    }
    if (report.problems.empty()) return text + context.style.paint(Colour::green, "no problem found") + "\n";
    text += context.style.paint(Colour::red, plural(report.problems.size(), "problem")) + "\n";
    for (const auto& [what, cure] : report.problems)
        text += fmt::format("  {}\n    {}\n", printable(what, 1000), printable(cure, 1000));
    return text;
}

} // namespace

Result<int> doctor(const Context& context)
{
    Report report;
    report_system(report);
    report_devices(report, context);
    report_cache(report, context);
    report_remotes(report);
    report_environment(report);
    const auto environments = report.environments.judge(report.machine);
    if (const std::string fields = dead_because(environments); !fields.empty())
        report.problems.emplace_back("no entry of the cache folder fits this machine: " + fields,
                                     "record again here, or give this machine a folder of its own");
    if (context.output == Output::json) {
        report.document["environments"] = to_json(environments);
        report.document["problems"] = Json::array();
        for (const auto& [what, cure] : report.problems)
            report.document["problems"].push_back({{"problem", what}, {"cure", cure}});
        print(report.document);
    } else {
        print(to_text(context, report, first_line(report, environments)));
    }
    return report.problems.empty() ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
