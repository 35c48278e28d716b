// Words of by-value parameters that differ between captures and follow nothing. Either somebody makes them anew each
// time, or nobody initialised them: padding, the tail of an array of which two elements are set. They become zero in
// the graph that is verified and published, all together, and the results tell which it was (differential_capture.md).
#pragma once

#include <span>
#include <vector>

#include "classify/classify.hpp"
#include "classify/classify_words.hpp"

namespace warmgraph {

struct ParamIndex {
    std::size_t node = 0, param = 0;
};

/// `bytes`: offsets, ascending. Those of one aligned word of 8 bytes are one word.
[[nodiscard]] std::vector<UnusedWord> unused_words(const ParamIndex& index, const WordPlace& place, ByteView first,
                                                   ByteView other, std::span<const std::size_t> bytes);

enum class Unused : std::uint8_t { zero, as_captured };
/// In the parameter's value.
void set_unused(Bytes& value, const UnusedWord& word, Unused what);

} // namespace warmgraph
