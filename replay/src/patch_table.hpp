// Which places of a graph follow which region or scalar: computed once, so that a moved input touches only its nodes.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

/// Where in a node a slot's value goes.
enum class Place : std::uint8_t { parameter, attribute, source, destination, operation, semaphore };

struct Site {
    std::uint32_t node = 0;
    Place place = Place::parameter;
    std::uint32_t index = 0; ///< of the parameter, attribute, memory operation or semaphore
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

} // namespace warmgraph::replay
