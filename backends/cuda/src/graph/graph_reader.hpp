// A CUgraph, whoever captured it, as a raw graph.
#pragma once

#include "device/core.hpp"

namespace warmgraph::backends::cuda {

/// Child graphs are inlined, allocations with their frees become empty nodes and RawGraph::allocations. The graph is left
/// as it is. not_recordable names node and kind of what cannot be held (NOTES.md lists it), and what would help.
[[nodiscard]] Result<RawGraph> read_graph(Core& core, CUgraph graph);

} // namespace warmgraph::backends::cuda
