// Facts that all entries of one machine share: backend, device, driver and runtime. If they differ, no entry of a store
// fits here. Pure: no driver call, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// Decides by the fact's name: "backend", "device.units", "driver.version", "runtime.version".
[[nodiscard]] bool is_of_environment(std::string_view fact) noexcept;

/// Returns the compared environment facts, in their order.
[[nodiscard]] std::vector<Fact> environment_of(const std::vector<Fact>& facts);

/// Returns 12 hex digits over names and values of environment_of(): the same on equal machines. "" if there are none.
/// REQUIRES: `facts` is canonical (canonicalize).
[[nodiscard]] std::string environment_key(const std::vector<Fact>& facts);

enum class EnvironmentFit : std::uint8_t {
    same,    ///< every fact that both have is equal
    newer,   ///< facts with an order are newer here, the others equal: fits if a newer driver is accepted
    differs, ///< no entry of that environment fits
};

struct EnvironmentComparison {
    EnvironmentFit fit = EnvironmentFit::same;
    std::vector<Mismatch> fields{}; ///< facts that are newer or differ; a fact that is accepted as it is does not count
};

/// Ignores facts that only one side has.
[[nodiscard]] EnvironmentComparison compare_environments(const std::vector<Fact>& recorded,
                                                         const std::vector<Fact>& here);

/// "device.units 2 recorded, 4 here; device.partition ..."
[[nodiscard]] std::string fields_text(const std::vector<Mismatch>& fields);

} // namespace warmgraph::guards
