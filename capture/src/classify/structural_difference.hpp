// How the work in two captures of one function differs, apart from addresses and parameter bytes.
#pragma once

#include <cstddef>
#include <optional>
#include <string>

#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph {

/// Returns a text such as "kernel rope (node 3)" or "copy (node 4)".
[[nodiscard]] std::string describe_node(const backends::RawGraph& graph, std::size_t index);

/// Returns the first difference in a part that cannot be a slot: nodes, order, edges, dimensions, sizes, modules,
/// attribute ids. nullopt: at most addresses and the bytes of parameters and attributes differ.
[[nodiscard]] std::optional<std::string> structural_difference(const backends::RawGraph& first,
                                                               const backends::RawGraph& other);

} // namespace warmgraph
