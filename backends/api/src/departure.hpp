// Compares elements with the envelope of others: BulkMemory::departure for one piece.
#pragma once

#include <span>

#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/base/bytes.hpp"

namespace warmgraph::backends {

/// Adds a piece's elements, whose first one has the index `first`, to `sum`. REQUIRES: all pieces have the same size,
/// in whole elements; add them in order.
void add_departures(Departure& sum, ByteView candidate, std::span<const ByteView> others, DType dtype,
                    std::uint64_t first, double roundings);

} // namespace warmgraph::backends
