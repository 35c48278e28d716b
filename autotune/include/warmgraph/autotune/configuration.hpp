// The configurations of a kernel: declared candidates, and ranges for coordinate descent. Pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"

namespace warmgraph::autotune {

/// Values of the parameters that a kernel is built with: {{"LANES", 4}, {"ROWS", 16}}.
using Configuration = std::map<std::string, std::int64_t>;

inline constexpr std::size_t k_most_candidates = 4096, k_most_parameters = 32, k_most_values = 4096;

/// Returns a text such as "LANES=4 ROWS=16".
[[nodiscard]] std::string to_text(const Configuration& configuration);

/// The values that a parameter may have, in ascending order.
struct Range {
    std::string name;
    std::vector<std::int64_t> values;
};

/// All configurations of a kernel.
struct Space {
    std::vector<Configuration> candidates; ///< the first candidate is the default
    std::vector<Range> ranges{};           ///< in the order in which descent changes them
    /// Whether a combination of values can be built. Empty: all combinations can be built. Not called for candidates.
    std::function<bool(const Configuration&)> admits{};
};

/// Checks a kernel's configurations. invalid_argument: no candidate, two equal candidates, candidates with different
/// parameters, a name that is not a C identifier, a range of an unknown parameter, or values that do not ascend.
[[nodiscard]] Result<void> check(const Space& space);

/// Returns a hash of the candidates in their order, because the first candidate is the default.
[[nodiscard]] Digest configs_hash(const std::vector<Configuration>& candidates);

/// Returns the number of candidates that equal this configuration.
[[nodiscard]] std::size_t matches(const Space& space, const Configuration& configuration);

/// Returns why descent could not have reached this configuration; an empty text if it could. It could if each value is
/// from a candidate or a range, and if the combination is admitted.
[[nodiscard]] std::string why_outside(const Space& space, const Configuration& configuration);

/// Returns the configurations with the next lower and the next higher value of the range, if these exist and are
/// admitted.
[[nodiscard]] std::vector<Configuration> neighbours(const Space& space, const Range& range,
                                                    const Configuration& configuration);

} // namespace warmgraph::autotune
