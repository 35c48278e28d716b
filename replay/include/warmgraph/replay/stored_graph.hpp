// Checks of a graph from a file for its users, in addition to the decoder's. Files are not trusted.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

struct DeclaredRegion {
    std::string_view name;
    cachefmt::RegionKind kind = cachefmt::RegionKind::input;
};

/// corrupt: the declared regions are not the first ones, in their order. Calls bind regions by position.
[[nodiscard]] Result<void> check_regions(std::span<const DeclaredRegion> declared, const cachefmt::Graph& graph);

/// unsupported: the graph has more than `most` bytes of constants, the limit for recordings too.
[[nodiscard]] Result<void> check_constants_size(const cachefmt::Graph& graph, std::uint64_t most);

} // namespace warmgraph::replay
