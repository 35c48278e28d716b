// What all entries of one machine share: backend, device, driver and runtime. Where that differs, no entry of a store fits
// here, whatever else it says. Pure: no driver call, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// By its name: "backend", "device.units", "driver.version", "runtime.version".
[[nodiscard]] bool is_of_environment(std::string_view fact) noexcept;

/// Those of `facts` that are of the environment and compared, in their order.
[[nodiscard]] std::vector<Fact> environment_of(const std::vector<Fact>& facts);

/// 12 hex digits over names and values of environment_of(): the same on machines that are alike. "" where there is none.
/// REQUIRES: `facts` is canonical (canonicalize).
[[nodiscard]] std::string environment_key(const std::vector<Fact>& facts);

enum class EnvironmentFit : std::uint8_t {
    same,    ///< every fact that both have is equal
    newer,   ///< those that have an order are newer here, the rest is equal: fits where a newer driver is accepted
    differs, ///< no entry of it fits
};

struct EnvironmentComparison {
    EnvironmentFit fit = EnvironmentFit::same;
    std::vector<Mismatch> fields{}; ///< what is newer, or what differs: an order that holds is no difference
};

/// Of facts that only one side has nothing is said.
[[nodiscard]] EnvironmentComparison compare_environments(const std::vector<Fact>& recorded,
                                                         const std::vector<Fact>& here);

/// "device.units 2 recorded, 4 here; device.partition ..."
[[nodiscard]] std::string fields_text(const std::vector<Mismatch>& fields);

} // namespace warmgraph::guards
