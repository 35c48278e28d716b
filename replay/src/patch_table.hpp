// Which places of a graph follow which region or scalar: computed once, so that a moved input touches only its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/places.hpp"
#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

struct Site {
    std::uint32_t node = 0;
    backends::Place place; ///< where the slot's value goes
    cachefmt::Slot slot;
};

struct PatchTable {
    std::vector<std::vector<Site>> by_region; ///< indexed as graph.regions
    std::vector<std::vector<Site>> by_scalar; ///< indexed as graph.scalars
};

[[nodiscard]] PatchTable make_patch_table(const cachefmt::Graph& graph);

/// Writes region address + addend. Allocates nothing. REQUIRES: the site was made from this graph.
void patch_region(backends::RawNode& node, const Site& site, const Address& region) noexcept;

/// Writes scalar + addend at the slot's width (integers wrap as the native arithmetic does).
void patch_scalar(backends::RawNode& node, const Site& site, std::uint64_t bits) noexcept;

/// resolve() with the graph's table, which takes as long to make as the rest.
[[nodiscard]] Result<backends::RawGraph> resolve(const cachefmt::Graph& graph, const PatchTable& table,
                                                 std::span<backends::Module* const> modules, const Bindings& bindings);

} // namespace warmgraph::replay
