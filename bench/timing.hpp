// Clocks and medians of what Google Benchmark does not time itself.
#pragma once

#include <algorithm>
#include <chrono>
#include <vector>

namespace warmgraph::bench {

using SteadyTime = std::chrono::steady_clock::time_point;

[[nodiscard]] inline SteadyTime now() noexcept { return std::chrono::steady_clock::now(); }

[[nodiscard]] inline double milliseconds_since(SteadyTime begin) noexcept
{
    return std::chrono::duration<double, std::milli>(now() - begin).count();
}

/// Of at least one value.
[[nodiscard]] inline double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::ranges::nth_element(values, middle);
    return *middle;
}

} // namespace warmgraph::bench
