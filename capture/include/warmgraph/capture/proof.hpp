// Two settings: how strictly a recording judges its captures.
#pragma once

#include <cstdint>

namespace warmgraph {

/// Whether a word that lies in a region counts as an address only if it moves together with the region in a second
/// capture.
enum class Proof : std::uint8_t { required, allow_unproven };

/// How to treat a word of kernel parameters that differs between captures for no known reason. The word is
/// uninitialised padding, or a value that is new each time (a counter, a clock). `tried`: the word becomes zero, and
/// the trials show whether the results stay right.
enum class UnusedWords : std::uint8_t { refused, tried };

} // namespace warmgraph
