// The sections of `warmgraph doctor`. Each fills its part of the report and adds its problems with their cures.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "context.hpp"
#include "verbs/environment.hpp"

namespace warmgraph::tool {

struct Report {
    Json document = Json::object();
    std::vector<std::pair<std::string, std::vector<std::pair<std::string, std::string>>>>
        sections;                                              ///< title, lines of name and text
    std::vector<std::pair<std::string, std::string>> problems; ///< problem, cure
    ThisMachine machine;
    std::vector<std::pair<std::string, std::string>> environment_keys; ///< id and key of each opened device
    Environments environments;                                         ///< environments of the folder's entries

    std::vector<std::pair<std::string, std::string>>& section(std::string title)
    {
        return sections.emplace_back(std::move(title), std::vector<std::pair<std::string, std::string>>{}).second;
    }
};

void report_system(Report& report); ///< version, platform, libraries
void report_devices(Report& report, const Context& context);
void report_cache(Report& report, const Context& context);
void report_remotes(Report& report); ///< those of the environment, by their labels; connects to nothing
void report_environment(Report& report);

} // namespace warmgraph::tool
