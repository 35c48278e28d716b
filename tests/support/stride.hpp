// Loops over very many similar steps: each bit of a file, each call of a driver.
#pragma once

#include <cstdint>

namespace warmgraph::test {

/// One step in k_stride is taken: a sanitizer makes a step ten times slower; builds without a sanitizer take all steps.
/// The number is odd, so that every byte has a taken bit, and of two alternating calls both are taken.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t k_stride = 5;
#else
inline constexpr std::uint64_t k_stride = 1;
#endif

/// Whether the nth call of one entry point, from 1, is taken. The first two always are: later ones mostly do the same.
[[nodiscard]] constexpr bool is_taken(std::uint64_t nth) noexcept { return nth <= 2 || nth % k_stride == 0; }

} // namespace warmgraph::test
