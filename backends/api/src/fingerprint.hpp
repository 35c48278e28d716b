// A fingerprint is a sum over words and their places, so pieces and threads may add in any order. The CUDA backend's
// bulk/kernels.cu computes the same sum.
#pragma once

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends {

/// Adds the words of a piece at `offset` (a multiple of 8). Only the last piece may end inside a word.
void add_words(Fingerprint& sum, ByteView piece, std::uint64_t offset) noexcept;

} // namespace warmgraph::backends
