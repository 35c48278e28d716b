// Bytes of by-value parameters that were never written, in captures that this library makes: they hold the paint of the
// stack. They are padding of structs, or the rest of an array with two elements set. They mean nothing to kernels and
// are zeros in the graph that is tried, verified and published. The answer ran with other bytes there, so comparing
// with it shows whether zeros are right.
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
/// addresses are equal in the first two captures, and counters differ between `first` and `moved`, so neither passes
/// for paint. Empty if the captures differ in structure.
[[nodiscard]] std::vector<UnwrittenByte> unwritten_bytes(const Captures& captures);

/// Returns the bits in which `again`, over Paint::other, differs from all other captures and `more`, over Paint::one
/// and at both depths, which must agree and hold that paint. A library set the byte's other bits (a bit-field). `more`
/// has two captures in a row, which shows that a bit is not a flag that alternates.
[[nodiscard]] std::vector<UnwrittenByte> unwritten_bits(const Captures& captures, std::span<const CapturedGraph> more);

/// Adds and sorts, as count_words() needs them.
void add(std::vector<UnwrittenByte>& to, const std::vector<UnwrittenByte>& more);

/// Makes the bits zero that hold paint. A changed graph is no longer the driver's own.
void clear(backends::RawGraph& graph, const std::vector<UnwrittenByte>& bytes);

/// How many words of 8 bytes contain them.
[[nodiscard]] std::size_t count_words(const std::vector<UnwrittenByte>& bytes) noexcept;

} // namespace warmgraph
