// Facts that all entries of one machine share: backend, device, driver and runtime. If they differ, no entry of a store
// fits here. Pure: no driver call, no I/O.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/guards/evaluate.hpp"

namespace warmgraph::guards {

/// Whether the fact of this name belongs to the environment, for example "backend", "device.units", "driver.version",
/// "runtime.version".
[[nodiscard]] bool is_of_environment(std::string_view fact) noexcept;

/// Returns the environment facts that are compared, in their order.
[[nodiscard]] std::vector<Fact> environment_of(const std::vector<Fact>& facts);

/// Returns 12 hex digits from the names and values of environment_of(). They are the same on equal machines. "" if
/// there are none. REQUIRES: `facts` is canonical (canonicalize).
[[nodiscard]] std::string environment_key(const std::vector<Fact>& facts);

enum class EnvironmentFit : std::uint8_t {
    same, ///< every fact that both environments have is equal
    /// Some facts with an order are newer here, all other facts are equal; entries fit if a newer driver is accepted.
    newer,
    differs, ///< no entry of the other environment fits
};

struct EnvironmentComparison {
    EnvironmentFit fit = EnvironmentFit::same;
    std::vector<Mismatch> fields{}; ///< facts that are newer or differ; without facts that are accepted
};

/// Compares two environments. Ignores facts that only one of them has.
[[nodiscard]] EnvironmentComparison compare_environments(const std::vector<Fact>& recorded,
                                                         const std::vector<Fact>& here);

/// Returns a text such as "device.units 2 recorded, 4 here; device.partition ...".
[[nodiscard]] std::string fields_text(const std::vector<Mismatch>& fields);

} // namespace warmgraph::guards
