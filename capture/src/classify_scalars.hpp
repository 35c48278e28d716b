// The words of by-value parameters that follow a declared scalar.
#pragma once

#include <vector>

#include "classify.hpp"

namespace warmgraph {

/// Slots of one parameter, by offset, as the probes show them. not_recordable: a word that changes with a scalar and is
/// not the scalar plus a constant at every probe. REQUIRES: the captures' structure is the same.
[[nodiscard]] Result<std::vector<cachefmt::Slot>> scalar_slots(const Interface& interface, const Captures& captures,
                                                               std::size_t node, std::size_t param);

} // namespace warmgraph
