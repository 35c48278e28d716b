// Host numbers by type and bits: conversion, ranges, and the values at which a scalar is probed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/capture/interface.hpp"

namespace warmgraph {

[[nodiscard]] bool is_scalar_type(DType type) noexcept;

/// A number of type `from` as bits of `to`; nullopt when it cannot hold it. Integers must fit, f64 rounds to f32, integers become
/// floats, floats never become integers.
[[nodiscard]] std::optional<std::uint64_t> convert(DType from, std::uint64_t bits, DType to) noexcept;

[[nodiscard]] std::string number_text(DType type, std::uint64_t bits);

/// The declared range as bits, or the whole type. invalid_argument when the type cannot hold a bound.
[[nodiscard]] Result<ScalarRange> range_of(const NumberDecl& scalar);
[[nodiscard]] bool in_range(DType type, std::uint64_t bits, const ScalarRange& range) noexcept;

/// Values other than `current` at which a capture shows where the scalar goes: all of a small range; else its ends,
/// their neighbours, the middle and pseudo-random ones. One value alone would take `position % 64` for `position`.
[[nodiscard]] std::vector<std::uint64_t> probe_values(DType type, const ScalarRange& range, std::uint64_t current);

} // namespace warmgraph
