// Where a capture's regions begin: no guard names an alignment above 256 bytes, so no capture has one.
#pragma once

#include <cstdint>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph {

/// Bytes from a flat address to the next one that is a multiple of the strongest class that a guard names, and of none
/// above: what a function chooses for an alignment of 512 bytes or more is not chosen there, and would be wrong where a
/// call has less.
[[nodiscard]] constexpr std::uint64_t to_strongest_class(std::uint64_t flat) noexcept
{
    constexpr std::uint64_t k_class = cachefmt::k_max_alignment, k_next = 2 * k_class;
    return (k_next + k_class - flat % k_next) % k_next;
}
static_assert(to_strongest_class(0) == 256 && to_strongest_class(256) == 0 && to_strongest_class(257) == 511);

} // namespace warmgraph
