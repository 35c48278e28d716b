// The places of a graph that follow each region or scalar. Computed once, so that a moved input changes only its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/places.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

struct Site {
    std::uint32_t node = 0;
    backends::Place place; ///< place of the slot's value
    cachefmt::Slot slot;
};

struct PatchTable {
    std::vector<std::vector<Site>> by_region; ///< indexed as graph.regions
    std::vector<std::vector<Site>> by_scalar; ///< indexed as graph.scalars
};

[[nodiscard]] PatchTable make_patch_table(const cachefmt::Graph& graph);

/// Writes the region's address + addend. Allocates nothing. REQUIRES: the site was made from this graph.
void patch_region(backends::RawNode& node, const Site& site, const Address& region) noexcept;

/// Writes scalar + addend in the slot's width (integers wrap like native arithmetic).
void patch_scalar(backends::RawNode& node, const Site& site, std::uint64_t bits) noexcept;

/// resolve() with a ready patch table; making the table takes as long as all other steps.
[[nodiscard]] Result<backends::RawGraph> resolve(const cachefmt::Graph& graph, const PatchTable& table,
                                                 std::span<backends::Module* const> modules, const Bindings& bindings);

} // namespace warmgraph::replay
