// Whether memory ranges overlap.
#pragma once

#include <cstdint>

#include "warmgraph/backends/address.hpp"

namespace warmgraph {

[[nodiscard]] inline bool holds(const MemoryRef& memory, std::uint64_t flat) noexcept
{
    return flat - memory.address.flat() < memory.size;
}

/// Whether the ranges share a byte. An empty range shares no byte.
[[nodiscard]] inline bool overlap(const MemoryRef& a, const MemoryRef& b) noexcept
{
    const bool is_nothing = a.size == 0 || b.size == 0;
    return !is_nothing && a.address.base == b.address.base &&
           (holds(a, b.address.flat()) || holds(b, a.address.flat()));
}

} // namespace warmgraph
