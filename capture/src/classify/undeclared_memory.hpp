// Live memory that a graph points to and nobody declared: what libraries allocate for themselves (cuFFT's tables).
#pragma once

#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

/// The allocations that words of kernels' parameters point into, each once: words that are the same in all captures and
/// lie in no region, no declared constant and no free block of any of them. `captures.allocation_at` must not be null.
[[nodiscard]] std::vector<MemoryRef> undeclared_memory(const Interface& interface, const Captures& captures);

} // namespace warmgraph
