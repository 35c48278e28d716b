// What a recording demands of captures.
#pragma once

#include <cstdint>

namespace warmgraph {

/// Whether a word may be taken for an address because it lies in a region, without a capture that proves it by moving.
enum class Proof : std::uint8_t { required, allow_unproven };

} // namespace warmgraph
