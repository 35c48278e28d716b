// Live memory that a graph points to and that is not declared: libraries' own allocations (cuFFT's tables).
#pragma once

#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

/// Returns the allocations that words of kernel parameters point into, without duplicates. Such a word is equal in all
/// captures and lies in no region, declared constant or free block. `captures.allocation_at` must not be null.
[[nodiscard]] std::vector<MemoryRef> undeclared_memory(const Interface& interface, const Captures& captures);

} // namespace warmgraph
