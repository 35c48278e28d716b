// Where the regions were in two captures: declared regions, scratch, and the captured graph's own allocations.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

/// A region in the first capture, and its address in the other one.
struct MappedRegion {
    enum class Origin : std::uint8_t { declared, scratch, constant };
    std::string name;
    Origin origin = Origin::declared;
    MemoryRef first;
    std::optional<MemoryRef> moved;

    /// Flat devices. Bytes from the first address to the other one, modulo 2^64; 0: it did not move, or is not known.
    [[nodiscard]] std::uint64_t delta() const noexcept
    {
        return moved ? moved->address.flat() - first.address.flat() : 0;
    }
    /// Flat devices. One past the end counts as inside.
    [[nodiscard]] bool contains(std::uint64_t flat) const noexcept { return flat - first.address.flat() <= first.size; }
    [[nodiscard]] bool contains_strictly(std::uint64_t flat) const noexcept
    {
        return flat - first.address.flat() < first.size;
    }
};

/// Returns the regions in the graph's order: declared, scratch, "graph allocation 0" ..., constants. REQUIRES: both
/// captures have equally many.
[[nodiscard]] std::vector<MappedRegion> map_regions(const Interface& interface, const Captures& captures);

/// Returns the names of two regions that moved by the same distance, or of one that did not move ("x" twice): such a
/// capture proves nothing about their words. nullopt: each region moved by its own distance.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> indistinct_movement(const Interface& interface,
                                                                                     const Captures& captures);

/// Joins scratch regions that are adjacent in both captures, under the first one's name: an address between two pools
/// is the end of one and the start of the other, and nothing shows which. The restored graph has them adjacent too.
/// REQUIRES: both captures have the same scratch, in the same order.
void join_scratch(CapturedGraph& first, CapturedGraph& moved);

/// A graph that allocates memory may get other addresses at every capture. Returns `other` as if it had the allocations
/// of `first`.
[[nodiscard]] backends::RawGraph with_allocations_of(const backends::RawGraph& first, backends::RawGraph other);

} // namespace warmgraph
