// Clocks and medians of what Google Benchmark does not time itself.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

namespace warmgraph::bench {

using SteadyTime = std::chrono::steady_clock::time_point;

[[nodiscard]] inline SteadyTime now() noexcept { return std::chrono::steady_clock::now(); }

[[nodiscard]] inline double milliseconds_since(SteadyTime begin) noexcept
{
    return std::chrono::duration<double, std::milli>(now() - begin).count();
}

/// The value below which `1 / part` of at least one value lies.
[[nodiscard]] inline double quantile(std::vector<double> values, std::size_t part)
{
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / part);
    std::ranges::nth_element(values, at);
    return *at;
}

/// Of at least one value.
[[nodiscard]] inline double median(std::vector<double> values) { return quantile(std::move(values), 2); }

/// Of at least one value. What else runs on a machine only ever adds time, so where single runs vary by more than what is looked
/// for, the lower quartile says it more steadily than the median.
[[nodiscard]] inline double lower_quartile(std::vector<double> values) { return quantile(std::move(values), 4); }

} // namespace warmgraph::bench
