// Where the regions were in two captures: declared ones, scratch, and what the captured graph allocated by itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

/// A region's place in the first capture and how far from there it is in the other one.
struct MappedRegion {
    enum class Origin : std::uint8_t { declared, scratch, constant };
    std::string name;
    Origin origin = Origin::declared;
    MemoryRef first;
    std::optional<MemoryRef> moved;

    /// Flat devices. Bytes from the first place to the other one, modulo 2^64; 0: it did not move, or nothing is known.
    [[nodiscard]] std::uint64_t delta() const noexcept
    {
        return moved ? moved->address.flat() - first.address.flat() : 0;
    }
    /// Flat devices. One past the end belongs to its region.
    [[nodiscard]] bool contains(std::uint64_t flat) const noexcept { return flat - first.address.flat() <= first.size; }
    [[nodiscard]] bool contains_strictly(std::uint64_t flat) const noexcept
    {
        return flat - first.address.flat() < first.size;
    }
};

/// In the order of the graph's regions: declared, scratch, "graph allocation 0" ..., constants. REQUIRES: both captures
/// have as many.
[[nodiscard]] std::vector<MappedRegion> map_regions(const Interface& interface, const Captures& captures);

/// The names of two regions that moved by the same distance, or of one that did not move at all ("x" twice): a capture
/// between such places proves nothing about their words. nullopt when every region can be told from the others.
[[nodiscard]] std::optional<std::pair<std::string, std::string>> indistinct_movement(const Interface& interface,
                                                                                     const Captures& captures);

/// Scratch that lies side by side in both captures becomes one region, under the first one's name: an address between
/// two pools is the end of one and the start of the other, and nothing would tell which. The restored graph gets them
/// side by side as well. REQUIRES: both captures have the same scratch, in the same order.
void join_scratch(CapturedGraph& first, CapturedGraph& moved);

/// A graph that allocates memory may get another range at every capture. `other` as it were had it got those of
/// `first`.
[[nodiscard]] backends::RawGraph with_allocations_of(const backends::RawGraph& first, backends::RawGraph other);

} // namespace warmgraph
