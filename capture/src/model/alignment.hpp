// The alignment of a capture's regions. No guard names an alignment above 256 bytes, so no captured region has a higher
// alignment.
#pragma once

#include <cstdint>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph {

/// Returns the bytes from a flat address to the next multiple of 256 bytes that is not a multiple of 512. A function
/// may choose other work for regions aligned to 512 bytes or more; that work would be wrong for calls with less aligned
/// regions, so captured regions are not aligned to 512 bytes.
[[nodiscard]] constexpr std::uint64_t to_strongest_class(std::uint64_t flat) noexcept
{
    constexpr std::uint64_t k_class = cachefmt::k_max_alignment, k_next = 2 * k_class;
    return (k_next + k_class - flat % k_next) % k_next;
}
static_assert(to_strongest_class(0) == 256 && to_strongest_class(256) == 0 && to_strongest_class(257) == 511);

} // namespace warmgraph
