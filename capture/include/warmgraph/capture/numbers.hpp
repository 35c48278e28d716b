// The values at which a scalar is probed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warmgraph/guards/numbers.hpp"

namespace warmgraph {

/// The values at which captures show where a scalar goes. The most informative values come first.
struct ProbePlan {
    std::vector<std::uint64_t> values; ///< values to probe, without the current value and without duplicates
    std::size_t least = 0;             ///< the first `least` values are always probed, however long that takes
    /// How many values the range has, with the current value. 0: a floating-point range, or 2^64 values.
    std::uint64_t total = 0;
    /// Whether `values` and the current value cover the whole range.
    [[nodiscard]] bool is_exhaustive() const noexcept { return total != 0 && values.size() + 1 >= total; }
};

/// A range of up to 4,096 integers is probed completely. In a larger range these values are probed: its ends with 130
/// neighbours each, 256 values in the middle, powers of two with neighbours, 0, 1, -1, multiples of 16, 64, 128 and
/// 256, then pseudo-random values. They find kernels that behave differently at each 16th number, at a page's end or at
/// 0.
[[nodiscard]] ProbePlan plan_probes(DType type, const ScalarRange& range, std::uint64_t current);

/// Returns a text such as "proven at all 2,048 values" or "sampled at 412 of 1,000,001 values". `probed`: how many of
/// the plan's values were probed.
[[nodiscard]] std::string proof_text(const ProbePlan& plan, std::size_t probed);

} // namespace warmgraph
