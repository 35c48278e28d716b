// What two captures of one function do differently, beyond addresses and the bytes of parameters.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph {

/// "kernel rope (node 3)", "copy (node 4)".
[[nodiscard]] std::string describe_node(const backends::RawGraph& graph, std::size_t index);

/// The first difference in what can be no slot: nodes, order, edges, dimensions, sizes, modules, attributes' ids.
/// nullopt when only addresses and the bytes of parameters and attributes may differ.
[[nodiscard]] std::optional<std::string> structural_difference(const backends::RawGraph& first,
                                                               const backends::RawGraph& other);

} // namespace warmgraph
