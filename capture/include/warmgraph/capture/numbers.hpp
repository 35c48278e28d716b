// Host numbers by type and bits: conversion, ranges, and the values at which a scalar is probed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

[[nodiscard]] bool is_scalar_type(DType type) noexcept;
/// The bits of a word that a number of this many bytes (4, 8) has.
[[nodiscard]] constexpr std::uint64_t bits_of_width(std::size_t width) noexcept
{
    return width == 8 ? ~0ULL : 0xFFFF'FFFFULL;
}
/// Floating point, of whatever width.
[[nodiscard]] bool is_real(DType type) noexcept;

/// A number of type `from` as bits of `to`; nullopt when it cannot hold it. Integers must fit, f64 rounds to f32,
/// integers become floats, floats never become integers.
[[nodiscard]] std::optional<std::uint64_t> convert(DType from, std::uint64_t bits, DType to) noexcept;

[[nodiscard]] std::string number_text(DType type, std::uint64_t bits);

/// The declared range as bits, or the whole type. invalid_argument when the type cannot hold a bound.
[[nodiscard]] Result<ScalarRange> range_of(const NumberDecl& scalar);
[[nodiscard]] bool in_range(DType type, std::uint64_t bits, const ScalarRange& range) noexcept;

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
