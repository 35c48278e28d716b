// Bytes of by-value parameters that nobody ever wrote, in captures that we make ourselves: they hold what the stack had
// been painted with. Padding of a struct on the stack, the rest of an array of which two elements are set. No kernel
// gets a meaning from them; they are zeros in what is tried, verified and published, and the answer, which ran with
// whatever lay there, tells whether that is right.
#pragma once

#include <compare>
#include <cstddef>
#include <span>
#include <vector>

#include "classify/classify.hpp"

namespace warmgraph {

struct UnwrittenByte {
    std::size_t node = 0, param = 0, offset = 0;
    std::byte bits{0xFF}; ///< of the byte; the others were written
    auto operator<=>(const UnwrittenByte&) const = default;
};

/// Those that hold Paint::other in `again` and Paint::one in each other capture. What depends on addresses alone is the
/// same in the first two, and what counts upwards differs between the first and the moved one: neither passes for
/// paint. Empty where captures differ in structure.
[[nodiscard]] std::vector<UnwrittenByte> unwritten_bytes(const Captures& captures);

/// Bits in which `again`, over Paint::other, differs from all other captures, `more` among them: these must agree, over
/// Paint::one, at both depths of the stack, and hold that paint there. The byte's other bits a library set (a
/// bit-field). `more` has two captures in a row, which tell such bits from a flag that alternates.
[[nodiscard]] std::vector<UnwrittenByte> unwritten_bits(const Captures& captures, std::span<const CapturedGraph> more);

/// In order, as count_words wants them.
void add(std::vector<UnwrittenByte>& to, const std::vector<UnwrittenByte>& more);

/// Makes those bits zero that hold paint. A graph that is changed is no longer the driver's own.
void clear(backends::RawGraph& graph, const std::vector<UnwrittenByte>& bytes);

/// Words of 8 bytes that they lie in.
[[nodiscard]] std::size_t count_words(const std::vector<UnwrittenByte>& bytes) noexcept;

} // namespace warmgraph
