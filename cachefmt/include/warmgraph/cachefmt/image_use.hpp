// What a graph needs of its images. Pure functions.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// For each of `images` images the names of the kernels that the nodes launch from it, sorted, each once. A node that
/// names an image beyond them counts for none.
[[nodiscard]] std::vector<std::vector<std::string>> kernels_in_use(std::span<const Node> nodes, std::size_t images);

/// The name of a variable that is in one list only, or has other contents there; "" where the lists hold the same.
[[nodiscard]] std::string first_difference(std::span<const ModuleVariable> before,
                                           std::span<const ModuleVariable> after);

/// What a graph needs besides its entry's file, by digest: images, and the contents of constants.
[[nodiscard]] std::vector<Digest> blobs_of(const Graph& graph);

} // namespace warmgraph::cachefmt
