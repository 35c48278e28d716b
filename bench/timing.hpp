// Clocks and medians for benchmarks that measure themselves.
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

/// The value at `1 / part` of the sorted values. REQUIRES: at least one value.
[[nodiscard]] inline double quantile(std::vector<double> values, std::size_t part)
{
    const auto at = values.begin() + static_cast<std::ptrdiff_t>(values.size() / part);
    std::ranges::nth_element(values, at);
    return *at;
}

/// REQUIRES: at least one value.
[[nodiscard]] inline double median(std::vector<double> values) { return quantile(std::move(values), 2); }

/// REQUIRES: at least one value. Other load on the machine only adds time. So if single runs vary more than the
/// measured difference, the lower quartile is steadier than the median.
[[nodiscard]] inline double lower_quartile(std::vector<double> values) { return quantile(std::move(values), 4); }

} // namespace warmgraph::bench
