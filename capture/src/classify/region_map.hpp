// Where the regions were in two captures: declared regions, scratch, and the captured graph's own allocations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

/// A region in the first capture, and its address in the other capture.
struct MappedRegion {
    enum class Origin : std::uint8_t { declared, scratch, constant };
    std::string name;
    Origin origin = Origin::declared;
    MemoryRef first;
    std::optional<MemoryRef> moved;

    /// For devices with flat addresses: bytes from the first address to the other address, modulo 2^64. 0: the region
    /// did not move, or its movement is not known.
    [[nodiscard]] std::uint64_t delta() const noexcept
    {
        return moved ? moved->address.flat() - first.address.flat() : 0;
    }
    /// For devices with flat addresses. The address one past the end counts as inside.
    [[nodiscard]] bool contains(std::uint64_t flat) const noexcept { return flat - first.address.flat() <= first.size; }
    [[nodiscard]] bool contains_strictly(std::uint64_t flat) const noexcept
    {
        return flat - first.address.flat() < first.size;
    }
};

/// Returns the regions in the graph's order: declared, scratch, "graph allocation 0" ..., constants. REQUIRES: both
/// captures have the same number of regions.
[[nodiscard]] std::vector<MappedRegion> map_regions(const Interface& interface, const Captures& captures);

/// Returns the names of two regions that moved by the same distance, or twice the name of a region that did not move.
/// The second capture then proves nothing about words in these regions. nullopt: each region moved by another distance.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> indistinct_movement(const Interface& interface,
                                                                                     const Captures& captures);

/// Joins scratch regions that are adjacent in both captures, under the first one's name: an address between two pools
/// is the end of one pool and the start of the other, and captures do not show which. These regions are adjacent in the
/// restored graph too. REQUIRES: both captures have the same scratch, in the same order.
void join_scratch(CapturedGraph& first, CapturedGraph& moved);

/// Memory that a graph allocates itself may have other addresses at every capture. Returns `other` with the addresses
/// of the allocations in `first`.
[[nodiscard]] backends::RawGraph with_allocations_of(const backends::RawGraph& first, backends::RawGraph other);

} // namespace warmgraph
