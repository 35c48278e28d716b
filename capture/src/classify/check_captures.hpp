// The checks of a function's captures before their words are compared.
#pragma once

#include "classify/classify.hpp"

namespace warmgraph {

/// Fails with not_recordable if a capture has no work, or if the captures differ in a part that cannot be a slot.
[[nodiscard]] Result<void> check_captures(const Interface& interface, const Captures& captures);

/// Checks one probe in the same way, against the first capture.
[[nodiscard]] Result<void> check_probe(const Interface& interface, const CapturedGraph& first,
                                       const ScalarProbe& probe);

} // namespace warmgraph
