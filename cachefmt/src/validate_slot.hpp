// Checks slots: their targets, and their places in the bytes that they fill.
#pragma once

#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// The allowed distance of an address from its region.
enum class Reach : std::uint8_t {
    inside,   ///< from 0 to the region's size, for memory objects, copies and fills
    anywhere, ///< at most k_addend_max before or after the start, for addresses that kernels compute with
};

/// Compilers fold offsets into base pointers, so a value may point outside its region; two captures have proven that it
/// follows the region. Device addresses have 48 or 49 bits.
inline constexpr std::int64_t k_addend_max = 1LL << 47;

[[nodiscard]] Result<void> validate_slot(const Slot& slot, Reach reach, const Graph& graph);

/// Checks the slots of a value, named `what` ("parameter") in messages: sorted by offset, not overlapping, inside.
[[nodiscard]] Result<void> validate_slots(std::string_view what, ByteView value, const std::vector<Slot>& slots,
                                          const Graph& graph);

} // namespace warmgraph::cachefmt
