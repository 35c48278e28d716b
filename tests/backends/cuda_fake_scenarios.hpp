// Programs that use the CUDA backend step by step. Each passes the failure of a step on.
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
    long least_errors = 1; ///< number of calls whose failure must make the scenario fail
};
[[nodiscard]] std::vector<Scenario> scenarios(); ///< All scenarios.
[[nodiscard]] std::vector<Scenario> foreign_scenarios();
/// One of the scenarios (cuda_fake_bulk_scenario.cpp).
[[nodiscard]] Result<void> works_on_bulk_memory(Device& device, const warmgraph::test::FakeCuda& fake);

inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

/// Part of the message when a scenario had no error but its results are wrong.
inline constexpr const char* k_wrong = "WRONG";

} // namespace warmgraph::backends::test
