// Configurations of a kernel, the candidates that are declared, and the ranges that coordinate descent may walk. Pure.
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

/// All configurations that there are.
struct Space {
    std::vector<Configuration> candidates; ///< the first is the default
    std::vector<Range> ranges{};           ///< in the order in which descent goes through them
    /// Which combinations can be built; empty: all. Candidates are not asked about.
    std::function<bool(const Configuration&)> admits{};
};

/// invalid_argument names what is wrong: no candidate, two that are equal, other parameters than the first one's, a name
/// that is no identifier of C, a range of no parameter, values that do not ascend.
[[nodiscard]] Result<void> check(const Space& space);

/// Of the candidates in their order, so that another default is another set.
[[nodiscard]] Digest configs_hash(const std::vector<Configuration>& candidates);

/// How many candidates are this configuration.
[[nodiscard]] std::size_t matches(const Space& space, const Configuration& configuration);

/// May descent have got there? Each value is one that a candidate has or that the range declares, and the combination is
/// admitted. An empty text says yes, else what is wrong.
[[nodiscard]] std::string why_outside(const Space& space, const Configuration& configuration);

/// The next value of the range below and above the configuration's, each where there is one and where it is admitted.
[[nodiscard]] std::vector<Configuration> neighbours(const Space& space, const Range& range,
                                                    const Configuration& configuration);

} // namespace warmgraph::autotune
