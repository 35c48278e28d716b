// The semantic check of slots: what they point at, and where they lie in the bytes that they patch.
#pragma once

#include <string_view>

#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

/// How far an address may lie from its region.
enum class Reach : std::uint8_t {
    inside,   ///< 0 to the region's size: what a memory object, a copy or a fill takes
    anywhere, ///< up to k_addend_max either way: what kernels compute with before they load
};

/// Compilers fold offsets into base pointers, so a value may point before its region's start or past its end; that it
/// follows the region is proven by capturing twice. Device addresses have 48 or 49 bits.
inline constexpr std::int64_t k_addend_max = 1LL << 47;

[[nodiscard]] Result<void> validate_slot(const Slot& slot, Reach reach, const Graph& graph);

/// Slots of `what` ("parameter") with bytes of their own: by offset, not overlapping, inside.
[[nodiscard]] Result<void> validate_slots(std::string_view what, ByteView value, const std::vector<Slot>& slots,
                                          const Graph& graph);

} // namespace warmgraph::cachefmt
