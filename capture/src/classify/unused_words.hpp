// Words of by-value parameters that differ between captures for no known reason. They are new values each time, or were
// never initialised: padding, the rest of an array with two elements set. All these words become zero in the graph that
// is verified and published; its results show whether that is right (differential_capture.md).
#pragma once

#include <span>
#include <vector>

#include "classify/classify.hpp"
#include "classify/classify_words.hpp"

namespace warmgraph {

struct ParamIndex {
    std::size_t node = 0, param = 0;
};

/// Returns one UnusedWord for each aligned word of 8 bytes that has some of `bytes` (offsets, ascending).
[[nodiscard]] std::vector<UnusedWord> unused_words(const ParamIndex& index, const WordPlace& place, ByteView first,
                                                   ByteView other, std::span<const std::size_t> bytes);

enum class UnusedFill : std::uint8_t { zero, as_captured };
/// Sets the word's bytes in the parameter's value.
void set_unused(Bytes& value, const UnusedWord& word, UnusedFill what);

} // namespace warmgraph
