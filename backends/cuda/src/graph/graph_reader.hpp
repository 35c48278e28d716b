// Reads any CUgraph as a raw graph.
#pragma once

#include "device/core.hpp"

namespace warmgraph::backends::cuda {

/// Inlines child graphs; allocations and their frees become empty nodes and RawGraph::allocations. Does not change the
/// graph. not_recordable names an unsupported node (NOTES.md lists them) and suggests a cure.
[[nodiscard]] Result<RawGraph> read_graph(Core& core, CUgraph graph);

} // namespace warmgraph::backends::cuda
