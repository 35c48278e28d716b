// The values at which a scalar is probed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "warmgraph/guards/numbers.hpp"

namespace warmgraph {

/// Values at which captures show where a scalar goes, in the order in which they tell most.
struct ProbePlan {
    std::vector<std::uint64_t> values; ///< other than the current one, each once
    std::size_t least = 0;             ///< so many are always probed, whatever the time
    /// How many values the range has, the current one included. 0: floating point, or 2^64.
    std::uint64_t total = 0;
    /// Whether all of them are every value of the range.
    [[nodiscard]] bool is_exhaustive() const noexcept { return total != 0 && values.size() + 1 >= total; }
};

/// Of a range of up to 4,096 whole numbers all. Else its ends with 130 neighbours each, 256 neighbours in the middle,
/// powers of two and their neighbours, 0, 1 and -1, multiples of 16, 64, 128 and 256, then pseudo-random ones: a kernel
/// that takes another way at each 16th number, at a page's end or at 0 shows it there.
[[nodiscard]] ProbePlan plan_probes(DType type, const ScalarRange& range, std::uint64_t current);

/// "proven at all 2,048 values", "sampled at 412 of 1,000,001 values". `probed`: of the plan's values.
[[nodiscard]] std::string proof_text(const ProbePlan& plan, std::size_t probed);

} // namespace warmgraph
