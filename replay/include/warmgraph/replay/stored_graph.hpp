// Checks of a graph that comes from a file, in addition to the decoder's checks, because files are not trusted.
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

/// Fails with corrupt if the declared regions are not the graph's first regions, in the same order. Calls bind regions
/// by position.
[[nodiscard]] Result<void> check_regions(std::span<const DeclaredRegion> declared, const cachefmt::Graph& graph);

/// Fails with unsupported if the graph has more than `most` bytes of constants. Recordings have the same limit.
[[nodiscard]] Result<void> check_constants_size(const cachefmt::Graph& graph, std::uint64_t most);

} // namespace warmgraph::replay
