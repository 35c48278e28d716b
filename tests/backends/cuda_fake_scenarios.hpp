// Scenarios: programs that use the CUDA backend step by step. If a step fails, the scenario returns the error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::test {

struct Scenario {
    std::string name;
    std::function<Result<void>(Device& device, const warmgraph::test::FakeCuda& fake)> run;
    long least_errors = 1; ///< how many calls must at least make the scenario fail when they fail
};
[[nodiscard]] std::vector<Scenario> scenarios(); ///< All scenarios.
[[nodiscard]] std::vector<Scenario> foreign_scenarios();
/// The scenario that works on bulk memory (cuda_fake_bulk_scenario.cpp).
[[nodiscard]] Result<void> works_on_bulk_memory(Device& device, const warmgraph::test::FakeCuda& fake);

inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

/// The message contains this text when a scenario had no error but wrong results.
inline constexpr const char* k_wrong = "WRONG";

} // namespace warmgraph::backends::test
