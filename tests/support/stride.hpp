// Loops over very many steps that are alike: each bit of a file, each call of a driver.
#pragma once

#include <cstdint>

namespace warmgraph::test {

/// Every which step is taken. A sanitizer makes one ten times slower; the tree without takes all. No multiple of 2: each byte has a
/// bit that is taken, and each pair of calls that take turns has both.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr std::uint64_t k_stride = 5;
#else
inline constexpr std::uint64_t k_stride = 1;
#endif

/// Whether the nth call of one entry point, from 1, is one of them. The first two always are: what later ones do is mostly the same.
[[nodiscard]] constexpr bool is_taken(std::uint64_t nth) noexcept { return nth <= 2 || nth % k_stride == 0; }

} // namespace warmgraph::test
