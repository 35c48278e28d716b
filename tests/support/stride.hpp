// Helpers for loops over very many similar steps, such as each bit of a file or each call of a driver.
#pragma once

#include <cstdint>

namespace warmgraph::test {

/// One step in k_stride is taken: a sanitizer makes a step ten times slower; builds without a sanitizer take all steps.
/// The number is odd: so some bit of every byte is taken, and if two calls alternate, both are taken.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t k_stride = 5;
#else
inline constexpr std::uint64_t k_stride = 1;
#endif

/// Whether the nth call of an entry point (1 is the first) is taken. The first two calls are always taken; later calls
/// mostly do the same.
[[nodiscard]] constexpr bool is_taken(std::uint64_t nth) noexcept { return nth <= 2 || nth % k_stride == 0; }

} // namespace warmgraph::test
