// Fills in graphs and streams: converts between raw work and the driver's structure.
#pragma once

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// unsupported: a pattern of 8 or 16 bytes that is not a repeated pattern of 4.
[[nodiscard]] Result<CUDA_MEMSET_NODE_PARAMS> to_native(const RawFill& fill);

/// Returns RawFill, or RawEmpty if nothing is written.
[[nodiscard]] Result<RawWork> read_fill(const Core& core, CUgraphNode node);
[[nodiscard]] Result<void> add(AddCall& call, const RawFill& fill);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawFill& before, const RawFill& after);

} // namespace warmgraph::backends::cuda
