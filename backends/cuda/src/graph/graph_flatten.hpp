// Turns a CUgraph and its child graphs into one list of nodes.
#pragma once

#include <vector>

#include "device/driver.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

struct FlatNode {
    CUgraphNode handle = nullptr; ///< null: an empty node at the start or end of a child graph
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    std::vector<std::uint32_t> dependencies; ///< like RawNode::dependencies; the next member is like RawNode::edges
    std::vector<EdgeData> edges;
};

/// Returns the nodes in the driver's order as far as the edges allow, so that two captures of the same work agree. A
/// child graph's nodes replace it. not_recordable: two edges between the same two nodes.
[[nodiscard]] Result<std::vector<FlatNode>> flatten(const Driver& driver, CUgraph graph);

/// Returns e.g. "memcpy" or "conditional".
[[nodiscard]] const char* kind_name(CUgraphNodeType type) noexcept;

} // namespace warmgraph::backends::cuda
