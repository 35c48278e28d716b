// The real size of an allocation: glibc's malloc adds 8 bytes, rounds up to 16, returns at least 32, and whole pages
// for large sizes. The real size counts, because many small strings and vectors consist mostly of this padding.
#pragma once

#include <cstdint>
#include <string>

namespace warmgraph::cachefmt {

[[nodiscard]] constexpr std::uint64_t heap_size(std::uint64_t bytes) noexcept
{
    constexpr std::uint64_t k_least = 32, k_own_pages = 128ULL << 10, k_page = 4096;
    if (bytes == 0) return 0;
    if (bytes >= k_own_pages) return bytes + k_page + 16;
    const std::uint64_t rounded = (bytes + 8 + 15) / 16 * 16;
    return rounded < k_least ? k_least : rounded;
}

/// The allocation of a std::string with `length` characters; short ones lie in the string itself.
[[nodiscard]] inline std::uint64_t text_size(std::uint64_t length) noexcept
{
    static const std::uint64_t k_inside = std::string{}.capacity();
    return length <= k_inside ? 0 : heap_size(length + 1);
}

template <class T>
[[nodiscard]] constexpr std::uint64_t items_size(std::uint64_t number) noexcept
{
    return heap_size(number * sizeof(T));
}

} // namespace warmgraph::cachefmt
