// Bytes of by-value parameters that were never written, in captures that this library makes: they hold the paint of the
// stack. Such bytes are padding of structs, or the rest of an array with two elements set. Kernels do not use them, and
// they are zeros in the graph that is tried, verified and published. The answer ran with other bytes there, so
// comparing with it shows whether zeros are right.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

struct UnwrittenByte {
    std::size_t node = 0, param = 0, offset = 0;
    std::byte bits{0xFF}; ///< the byte's unwritten bits
    auto operator<=>(const UnwrittenByte&) const = default;
};

/// Returns the bytes that hold Paint::other in `again` and Paint::one in every other capture. Values that depend on
/// addresses are equal in the first two captures, and counters differ between `first` and `moved`, so neither of these
/// is mistaken for paint. Empty if the captures differ in structure.
[[nodiscard]] std::vector<UnwrittenByte> unwritten_bytes(const Captures& captures);

/// Returns the bits that hold Paint::other in `again`, and Paint::one in all other captures and in `more`, at both
/// depths. A library set the byte's other bits (a bit-field). `more` has two captures in a row, which shows that a bit
/// is not a flag that alternates.
[[nodiscard]] std::vector<UnwrittenByte> unwritten_bits(const Captures& captures, std::span<const CapturedGraph> more);

/// Adds `more` to `to` and sorts the result, because count_words() needs sorted bytes.
void add(std::vector<UnwrittenByte>& to, const std::vector<UnwrittenByte>& more);

/// Sets the bits that hold paint to zero. If this changes the graph, drops `graph.native`, because the driver's own
/// graph still has the paint.
void clear(backends::RawGraph& graph, const std::vector<UnwrittenByte>& bytes);

/// Returns how many words of 8 bytes contain `bytes`, which must be sorted.
[[nodiscard]] std::size_t count_words(const std::vector<UnwrittenByte>& bytes) noexcept;

} // namespace warmgraph
