// A graph as boxes in layers: what the report's page draws.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::tool {

/// One node, or nodes in a row that nothing branches from.
struct Box {
    std::vector<std::uint32_t> nodes; ///< indices into Graph::nodes, ascending, at least one
    std::uint32_t layer = 0;          ///< one more than the deepest box that it waits for
    std::uint32_t place = 0;          ///< from the left within its layer
};

struct Drawing {
    std::vector<Box> boxes;                                     ///< edges go from a lower to a higher index
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges; ///< between boxes, sorted, unique
    std::size_t left_out = 0;                                   ///< nodes that are in no box
};

/// At most `most_boxes` boxes. A graph with more nodes has rows of nodes folded into one box each, and where that is not
/// enough the last boxes are left out. REQUIRES: the graph is valid (edges from lower to higher indices), most_boxes > 0.
[[nodiscard]] Drawing draw(const cachefmt::Graph& graph, std::size_t most_boxes);

} // namespace warmgraph::tool
