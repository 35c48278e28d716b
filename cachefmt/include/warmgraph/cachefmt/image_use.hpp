// The parts of its images that a graph uses. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// Returns, for each of `images` images, the sorted and unique names of the kernels that nodes launch from it. Nodes
/// with an image index out of range are ignored.
[[nodiscard]] std::vector<std::vector<std::string>> kernels_in_use(std::span<const Node> nodes, std::size_t images);

/// Returns the name of a variable that is in one list only or whose contents differ; "" if the lists are equal.
[[nodiscard]] std::string first_difference(std::span<const ModuleVariable> before,
                                           std::span<const ModuleVariable> after);

/// The digests of the images and constants that the graph needs and that are stored outside its entry's file.
[[nodiscard]] std::vector<Digest> blobs_of(const Graph& graph);

} // namespace warmgraph::cachefmt
