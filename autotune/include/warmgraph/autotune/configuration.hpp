// A kernel's configurations, the declared candidates, and the ranges for coordinate descent. Pure.
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

/// "LANES=4 ROWS=16"
[[nodiscard]] std::string to_text(const Configuration& configuration);

/// The values that a parameter may take, ascending.
struct Range {
    std::string name;
    std::vector<std::int64_t> values;
};

/// All configurations of a kernel.
struct Space {
    std::vector<Configuration> candidates; ///< the first is the default
    std::vector<Range> ranges{};           ///< in the order of the descent
    /// Whether a combination can be built; empty: all can. Not called for candidates.
    std::function<bool(const Configuration&)> admits{};
};

/// invalid_argument says why: no candidate, two equal candidates, candidates with different parameters, a name that is
/// not a C identifier, a range of an unknown parameter, or values that do not ascend.
[[nodiscard]] Result<void> check(const Space& space);

/// A hash of the candidates in their order, because another default makes another set.
[[nodiscard]] Digest configs_hash(const std::vector<Configuration>& candidates);

/// The number of candidates that equal this configuration.
[[nodiscard]] std::size_t matches(const Space& space, const Configuration& configuration);

/// Whether descent could have reached this configuration: each value is from a candidate or a range, and the
/// combination is admitted. Returns an empty text, or the reason why not.
[[nodiscard]] std::string why_outside(const Space& space, const Configuration& configuration);

/// The configurations with the next lower and the next higher value of the range, where these exist and are admitted.
[[nodiscard]] std::vector<Configuration> neighbours(const Space& space, const Range& range,
                                                    const Configuration& configuration);

} // namespace warmgraph::autotune
