// A graph as boxes in layers, for drawing it in the report's page.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::tool {

/// One node, or a chain of nodes without branches.
struct Box {
    std::vector<std::uint32_t> nodes; ///< indices into Graph::nodes, ascending, at least one
    std::uint32_t layer = 0;          ///< one more than its deepest predecessor's layer
    std::uint32_t place = 0;          ///< position from the left in its layer
};

struct Drawing {
    std::vector<Box> boxes;                                     ///< edges go from a lower to a higher index
    std::vector<std::pair<std::uint32_t, std::uint32_t>> edges; ///< between boxes, sorted, unique
    std::size_t left_out = 0;                                   ///< nodes without a box
};

/// Draws at most `most_boxes` boxes. In a graph with more nodes, chains of nodes share a box; if that is not enough,
/// the last boxes are left out. REQUIRES: the graph is valid (edges from lower to higher indices), most_boxes > 0.
[[nodiscard]] Drawing draw(const cachefmt::Graph& graph, std::size_t most_boxes);

} // namespace warmgraph::tool
