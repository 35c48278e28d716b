// The benchmarks' results, as a table for people and JSON for machines: figures, targets, and ratios within this run.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

namespace warmgraph::bench {

/// Collects runs by name (medians of the repetitions); prints nothing itself.
class Collector final : public benchmark::BenchmarkReporter {
public:
    bool ReportContext(const Context&) override { return true; }
    void ReportRuns(const std::vector<Run>& runs) override;
    /// Median time of a benchmark in nanoseconds; 0 when it did not run.
    [[nodiscard]] double nanoseconds(const std::string& name) const noexcept;
    [[nodiscard]] bool has(const std::string& name) const noexcept { return find(name) != nullptr; }
    /// Returns a benchmark's counter; 0 when the counter does not exist.
    [[nodiscard]] double counter(const std::string& name, const std::string& counter) const noexcept;
    [[nodiscard]] const benchmark::UserCounters& counters(const std::string& name) const noexcept;

private:
    struct Figure {
        std::string name;
        double nanoseconds = 0;
        benchmark::UserCounters counters;
    };
    [[nodiscard]] const Figure* find(const std::string& name) const noexcept;
    std::vector<Figure> m_figures;
};

struct Line {
    std::string what;
    double value = 0;
    std::string unit;
    std::string target; ///< the target in the issue; empty without a target
    bool met = true;
};

/// Collects lines, with or without a target.
class Lines {
public:
    void add(std::string what, double value, std::string unit)
    {
        m_lines.push_back({std::move(what), value, std::move(unit), "", true});
    }
    void at_most(std::string what, double value, std::string unit, double target);
    void at_least(std::string what, double value, std::string unit, double target);
    [[nodiscard]] std::vector<Line> all() && { return std::move(m_lines); }

private:
    std::vector<Line> m_lines;
};

/// The lines of the benchmarks that ran.
[[nodiscard]] std::vector<Line> lines(const Collector& collector);
void add_cuda(Lines& lines, const Collector& collector); ///< cuda_report.cpp
[[nodiscard]] std::string table(const std::vector<Line>& lines);
[[nodiscard]] std::string json(const std::vector<Line>& lines);

} // namespace warmgraph::bench
