// What a recording demands of captures.
#pragma once

#include <cstdint>

namespace warmgraph {

/// Whether a word may be taken for an address because it lies in a region, without a capture that proves it by moving.
enum class Proof : std::uint8_t { required, allow_unproven };

/// What is done with a word of a kernel's parameters that differs between captures and follows nothing: it may be
/// padding that nobody initialised, or it is made anew each time (a counter, a clock). `tried`: it becomes zero, and
/// the results tell.
enum class UnusedWords : std::uint8_t { refused, tried };

} // namespace warmgraph
