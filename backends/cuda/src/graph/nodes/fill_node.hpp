// Fills, as graph nodes and in streams: raw work to the driver's structure and back.
#pragma once

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// unsupported: a pattern of 8 or 16 bytes that does not repeat itself within 4.
[[nodiscard]] Result<CUDA_MEMSET_NODE_PARAMS> to_native(const RawFill& fill);

/// RawFill, or RawEmpty where nothing is written.
[[nodiscard]] Result<RawWork> read_fill(const Core& core, CUgraphNode node);
[[nodiscard]] Result<void> add(AddCall& call, const RawFill& fill);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawFill& before, const RawFill& after);

} // namespace warmgraph::backends::cuda
