// Elements against the envelope of others: what BulkMemory::departure says of one piece.
#pragma once

#include <span>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends {

/// Adds a piece's elements, whose first one has the index `first`, to `sum`. REQUIRES: pieces of equal size, whole
/// elements; later pieces after earlier ones.
void add_departures(Departure& sum, ByteView candidate, std::span<const ByteView> others, DType dtype,
                    std::uint64_t first, double roundings);

} // namespace warmgraph::backends
