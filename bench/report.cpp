#include "report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace warmgraph::bench {

void Collector::ReportRuns(const std::vector<Run>& runs)
{
    for (const Run& run : runs) {
        const bool repeated = run.repetitions > 1;
        if (repeated && run.aggregate_name != "median") continue;
        // GetAdjustedRealTime uses the run's own unit.
        const double unit = benchmark::GetTimeUnitMultiplier(run.time_unit);
        m_figures.push_back({run.run_name.function_name + (run.run_name.args.empty() ? "" : "/" + run.run_name.args),
                             run.GetAdjustedRealTime() / unit * 1e9, run.counters});
    }
}

const Collector::Figure* Collector::find(const std::string& name) const noexcept
{
    const auto found = std::ranges::find(m_figures, name, &Figure::name);
    return found == m_figures.end() ? nullptr : &*found;
}

double Collector::nanoseconds(const std::string& name) const noexcept
{
    const Figure* figure = find(name);
    return figure == nullptr ? 0 : figure->nanoseconds;
}

const benchmark::UserCounters& Collector::counters(const std::string& name) const noexcept
{
    static const benchmark::UserCounters none;
    const Figure* figure = find(name);
    return figure == nullptr ? none : figure->counters;
}

double Collector::counter(const std::string& name, const std::string& counter) const noexcept
{
    const benchmark::UserCounters& all = counters(name);
    const auto found = all.find(counter);
    return found == all.end() ? 0 : found->second.value;
}

void Lines::at_most(std::string what, double value, std::string unit, double target)
{
    m_lines.push_back({std::move(what), value, unit, fmt::format("<= {} {}", target, unit), value <= target});
}

void Lines::at_least(std::string what, double value, std::string unit, double target)
{
    m_lines.push_back({std::move(what), value, unit, fmt::format(">= {}{}", target, unit), value >= target});
}

namespace {

void add_library(Lines& lines, const Collector& collector)
{
    const auto time = [&](const char* name) { return collector.nanoseconds(name); };
    if (collector.has("call_guard/64")) {
        lines.at_most("guards of a call, 64 tensors, addresses unchanged", time("call_guard/64"), "ns", 200);
        lines.add("guards of a call, 64 tensors, one moved", time("call_guard_moved/64"), "ns");
    }
    if (collector.has("lookup_exact")) {
        lines.at_most("look-up among 10,000 entries, hit", time("lookup_exact") / 1e6, "ms", 1);
        lines.add("look-up among 10,000 entries, miss, 64 variants judged", time("lookup_scan") / 1e6, "ms");
    }
    if (collector.has("bundle_open")) {
        lines.at_most("opening a bundle of 1 GiB", time("bundle_open") / 1e6, "ms", 100);
        lines.add("opening it, and judging its 1,024 entries", time("bundle_check") / 1e6, "ms");
        lines.add("loading one of its functions into a folder", time("bundle_load_one") / 1e6, "ms");
        lines.add("loading all of it / copying such a folder", time("bundle_load_all") / time("copy_folder"), "x");
    }
    if (collector.has("decode_per_mb")) {
        lines.add("verify and decode, per MB of entry", time("decode_per_mb") / 1e6, "ms/MB");
        lines.add("verify a header, 8 KB", time("decode_header") / 1e3, "us");
    }
}

void add_opencl_calls(Lines& lines, const Collector& collector)
{
    const double bare = collector.nanoseconds("bare_enqueue"), steady = collector.nanoseconds("steady_call");
    if (bare <= 0 || steady <= 0) return;
    lines.add("bare OpenCL enqueue, 32 nodes", bare / 1e3, "us");
    lines.add("steady call, 32 nodes", steady / 1e3, "us");
    lines.add("steady call / bare enqueue", steady / bare, "x");
    lines.add("call with a moved input / steady call", collector.nanoseconds("steady_call_moved") / steady, "x");
}

void add_first_calls(Lines& lines, const Collector& collector)
{
    const auto figure = [&](const char* name) { return collector.counter("first_call", name); };
    const double cold = figure("cold_ms"), warm = figure("warm_ms");
    if (cold <= 0 || warm <= 0) return;
    lines.add("first call, cold (compile, record, verify, publish)", cold, "ms");
    lines.add("first call, warm (look up, load, build, launch)", warm, "ms");
    lines.at_least("first call, cold / warm", cold / warm, "x", 100);
    lines.add("process to first token, cold", figure("cold_token_ms"), "ms");
    lines.add("process to first token, warm", figure("warm_token_ms"), "ms");
    lines.add("  of it opening the device, the floor", figure("context_ms"), "ms");
}

} // namespace

std::vector<Line> lines(const Collector& collector)
{
    Lines result;
    add_library(result, collector);
    add_opencl_calls(result, collector);
    add_first_calls(result, collector);
    add_cuda(result, collector);
    return std::move(result).all();
}

std::string table(const std::vector<Line>& lines)
{
    std::string text = fmt::format("{:<56} {:>12} {:<6} {:<12}\n{:-<90}\n", "what", "median", "", "target", "");
    for (const Line& line : lines)
        text += fmt::format("{:<56} {:>12.2f} {:<6} {:<12}{}\n", line.what, line.value, line.unit, line.target,
                            line.target.empty() ? "" : (line.met ? "met" : "MISSED"));
    return text;
}

std::string json(const std::vector<Line>& lines)
{
    nlohmann::json document = nlohmann::json::array();
    for (const Line& line : lines)
        document.push_back({{"what", line.what},
                            {"median", line.value},
                            {"unit", line.unit},
                            {"target", line.target},
                            {"met", line.met}});
    return nlohmann::json{{"benchmarks", document}}.dump(2);
}

} // namespace warmgraph::bench
