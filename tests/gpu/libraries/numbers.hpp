// Makes the contents of regions, and compares results.
#pragma once

#include <optional>
#include <span>

#include "library_case.hpp"

namespace warmgraph::test::libraries {

/// Pseudo-random contents for the region's type. They are the same in every process if the seed is the same.
[[nodiscard]] std::vector<std::byte> random_contents(const Region& region, std::uint32_t seed);

/// Describes how `found` differs from `expected`, or returns nullopt. Integers must be equal; floats may differ by 1e-4
/// (f32), 1e-7 (f64) or 2e-2 (16 and 8 bits) times the larger of 1 and the value, as in tests/gpu/torch/operators.py.
[[nodiscard]] std::optional<std::string> difference(const Region& region, std::span<const std::byte> expected,
                                                    std::span<const std::byte> found);

} // namespace warmgraph::test::libraries
