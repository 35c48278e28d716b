// A CUgraph and its child graphs as one list of nodes.
#pragma once

#include <vector>

#include "device/driver.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

struct FlatNode {
    CUgraphNode handle = nullptr; ///< null: stands for the start or the end of a child graph
    CUgraphNodeType type = CU_GRAPH_NODE_TYPE_EMPTY;
    std::vector<std::uint32_t> dependencies; ///< as RawNode's, both
    std::vector<EdgeData> edges;
};

/// In the driver's node order as far as the edges allow, which is the same for two captures of the same work; a child
/// graph's nodes at its place. not_recordable: two edges between the same two nodes.
[[nodiscard]] Result<std::vector<FlatNode>> flatten(const Driver& driver, CUgraph graph);

/// "memcpy", "conditional" ...
[[nodiscard]] const char* kind_name(CUgraphNodeType type) noexcept;

} // namespace warmgraph::backends::cuda
