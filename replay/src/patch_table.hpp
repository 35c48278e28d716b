// The places in a graph that follow each region or scalar. They are computed once. If an input moves, only the nodes
// that use it are changed.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/node_places.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

struct Site {
    std::uint32_t node = 0;
    backends::NodePlace place; ///< place of the slot's value in the raw node
    cachefmt::Slot slot;
};

struct PatchTable {
    std::vector<std::vector<Site>> by_region; ///< the sites that follow each region, by index in graph.regions
    std::vector<std::vector<Site>> by_scalar; ///< the sites that follow each scalar, by index in graph.scalars
};

[[nodiscard]] PatchTable make_patch_table(const cachefmt::Graph& graph);

/// Writes the region's address plus the slot's addend. Allocates nothing. REQUIRES: the site was made from this graph.
void patch_region(backends::RawNode& node, const Site& site, const Address& region) noexcept;

/// Writes the scalar plus the slot's addend, in the slot's width (integers wrap like native arithmetic).
void patch_scalar(backends::RawNode& node, const Site& site, std::uint64_t bits) noexcept;

/// As resolve(), with a patch table that is already made. Making the table takes as long as all other steps.
[[nodiscard]] Result<backends::RawGraph> resolve(const cachefmt::Graph& graph, const PatchTable& table,
                                                 std::span<backends::Module* const> modules, const Bindings& bindings);

} // namespace warmgraph::replay
