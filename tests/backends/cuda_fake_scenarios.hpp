// What a program does with the CUDA backend, a step at a time, each step's failure passed on.
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
    long least_errors = 1; ///< calls whose failure it cannot do without
};
[[nodiscard]] std::vector<Scenario> scenarios(); ///< all
[[nodiscard]] std::vector<Scenario> foreign_scenarios();
/// One of them (cuda_fake_bulk_scenario.cpp).
[[nodiscard]] Result<void> works_on_bulk_memory(Device& device, const warmgraph::test::FakeCuda& fake);

inline void PrintTo(const Scenario& scenario, std::ostream* out) { *out << scenario.name; }

/// In the message of a scenario whose work was done without an error, and is wrong.
inline constexpr const char* k_wrong = "WRONG";

} // namespace warmgraph::backends::test
