// What a graph from a file must be for those who bind it, beside what its decoder checks. Files are not trusted.
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

/// Calls bind by position: what is declared comes first, in its order, and all else is the entry's own. Else corrupt.
[[nodiscard]] Result<void> check_regions(std::span<const DeclaredRegion> declared, const cachefmt::Graph& graph);

/// What a function may keep (`most` bytes of constants) is what it may be given. Else unsupported.
[[nodiscard]] Result<void> check_constants_size(const cachefmt::Graph& graph, std::uint64_t most);

} // namespace warmgraph::replay
