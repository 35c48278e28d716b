#include "result.hpp"

#include <algorithm>

#include <fmt/format.h>

namespace llm {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const FunctionResult& function)
{
    const std::optional<double> steady = function.times.median_us();
    Json phases = Json::object();
    for (const auto& [name, took] : function.report.phases) phases[name] = took;
    return {{"outcome", warmgraph::to_string(function.report.outcome)},
            {"reason", function.report.reason},
            {"entry", function.report.entry},
            {"calls", function.times.calls()},
            {"first_call_ms", function.times.first_ms},
            {"steady_call_us", steady ? Json(*steady) : Json()},
            {"phases", phases}};
}

std::string config_text(const warmgraph::TunedConfig& config)
{
    std::string text;
    for (const auto& [name, value] : config) text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    return text;
}

/// The best geometry's speed divided by the default's speed.
double gain(const warmgraph::TuningReport& report)
{
    return report.best_ms > 0 ? report.default_ms / report.best_ms : 1;
}

Json to_json(const warmgraph::TuningReport& report)
{
    Json timings = Json::array();
    for (const warmgraph::TuningTiming& timing : report.timings) {
        timings.push_back({{"config", config_text(timing.config)}, {"ms", timing.ms}, {"rounds", timing.rounds}});
        if (!timing.failed.empty()) timings.back()["failed"] = timing.failed;
    }
    return {{"outcome", warmgraph::to_string(report.outcome)},
            {"reason", report.reason},
            {"config", config_text(report.config)},
            {"found_by", report.found_by},
            {"took_ms", report.took_ms},
            {"search_ms", report.search_ms},
            {"default_ms", report.default_ms},
            {"best_ms", report.best_ms},
            {"gain", gain(report)},
            {"timings", std::move(timings)}};
}

std::vector<std::string> phase_names(const FunctionResult& function)
{
    std::vector<std::string> names;
    for (const auto& phase : function.report.phases) names.push_back(phase.first);
    return names;
}

std::string phase_of(const FunctionResult& function, const std::string& name)
{
    for (const auto& [phase, took] : function.report.phases) {
        if (phase == name) return milliseconds(took);
    }
    return "-";
}

template <class Cell>
std::vector<std::string> cells(std::string title, const std::vector<FunctionResult>& functions, Cell&& cell)
{
    std::vector<std::string> row{std::move(title)};
    for (const FunctionResult& function : functions) row.push_back(cell(function));
    return row;
}

} // namespace

std::vector<std::string> merged(std::vector<std::string> first, const std::vector<std::string>& second)
{
    auto at = first.begin();
    for (const std::string& name : second) {
        const auto found = std::find(first.begin(), first.end(), name);
        at = (found == first.end() ? first.insert(at, name) : found) + 1;
    }
    return first;
}

std::string to_text(const warmgraph::TuningReport& report)
{
    const std::string how = report.found_by.empty() ? "default" : report.found_by;
    std::string text = fmt::format("{}: {} ({}, {})", report.kernel, config_text(report.config), how,
                                   warmgraph::to_string(report.outcome));
    if (report.best_ms > 0)
        text += fmt::format(", {:.2f}x the default's speed ({} instead of {} for one layer)", gain(report),
                            microseconds(1000 * report.best_ms), microseconds(1000 * report.default_ms));
    return report.reason.empty() ? text : text + "; " + report.reason;
}

Json to_json(const Result& result)
{
    Json functions = Json::object();
    for (const FunctionResult& function : result.functions) functions[function.report.function] = to_json(function);
    const auto of = [&result](warmgraph::ArtifactKind kind) { return result.statistics.of(kind); };
    const warmgraph::KindStatistics entries = of(warmgraph::ArtifactKind::entries),
                                    compiled = of(warmgraph::ArtifactKind::compiled);
    Json tuning = Json::object();
    for (const warmgraph::TuningReport& report : result.tuning) tuning[report.kernel] = to_json(report);
    return {{"text", result.text},
            {"tokens", result.tokens},
            {"functions", functions},
            {"time_to_first_token_ms", result.first_token_ms},
            {"time_to_first_token_with_context_ms", result.first_token_with_context_ms},
            {"phases", {{"context", result.context_ms}, {"weights", result.weights_ms}}},
            {"recording_ms", result.recording_ms},
            {"tuning_ms", result.tuning_ms},
            {"tuning", tuning},
            {"saved_ms",
             {{"entries", entries.saved_ms},
              {"compiled", compiled.saved_ms},
              {"tuned", of(warmgraph::ArtifactKind::tuned).saved_ms}}},
            {"hits", entries.hits},
            {"misses", entries.misses},
            {"miss_reasons", entries.miss_reasons},
            {"programs_compiled", compiled.made},
            {"programs_loaded", compiled.hits},
            {"summary", result.summary}};
}

Table to_table(const Result& result)
{
    std::vector<std::string> names;
    for (const FunctionResult& function : result.functions) names = merged(std::move(names), phase_names(function));

    Table table;
    table.row(cells("", result.functions, [](const FunctionResult& f) { return f.report.function; }));
    table.row(cells("outcome", result.functions,
                    [](const FunctionResult& f) { return std::string(warmgraph::to_string(f.report.outcome)); }));
    for (const std::string& name : names) {
        table.row(cells(name, result.functions, [&](const FunctionResult& f) { return phase_of(f, name); }));
    }
    table.rule();
    table.row(
        cells("first call", result.functions, [](const FunctionResult& f) { return milliseconds(f.times.first_ms); }));
    table.row(cells("later calls", result.functions, [](const FunctionResult& f) {
        const std::optional<double> steady = f.times.median_us();
        return steady ? microseconds(*steady) : std::string("-");
    }));
    table.rule();
    table.row({"context", milliseconds(result.context_ms)});
    table.row({"weights", milliseconds(result.weights_ms)});
    if (!result.tuning.empty()) table.row({"tuning", milliseconds(result.tuning_ms)});
    for (const warmgraph::TuningReport& report : result.tuning)
        table.row({"gain of " + report.kernel, fmt::format("{:.2f}x", gain(report))});
    table.strong_row({"first token", milliseconds(result.first_token_ms)});
    if (result.statistics.of(warmgraph::ArtifactKind::entries).made > 0)
        table.row({"recording, afterwards", milliseconds(result.recording_ms)});
    return table;
}

} // namespace llm
