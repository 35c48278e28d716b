// A raw graph as a CUgraph.
#pragma once

#include <deque>
#include <vector>

#include "device/core.hpp"
#include "graph/native_graph.hpp"
#include "graph/nodes/kernel_node.hpp"

namespace warmgraph::backends::cuda {

struct BuiltGraph {
    NativeGraph graph;
    std::vector<CUgraphNode> nodes; ///< as RawGraph::nodes
    std::deque<KernelFunction> functions;
    std::vector<const KernelFunction*> kernels; ///< as RawGraph::nodes, into `functions`; null for other kinds
};

/// Function attributes are set, node attributes set and read back, edges added in groups of equal edge data and read back
/// (measured): driver_failed when the driver holds something else than it was given.
[[nodiscard]] Result<BuiltGraph> build_graph(Core& core, const RawGraph& graph);

} // namespace warmgraph::backends::cuda
