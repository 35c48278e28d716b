// What must hold between the captures of one function before their words are compared.
#pragma once

#include "classify/classify.hpp"

namespace warmgraph {

/// not_recordable: nothing was recorded, or the captures differ in what can be no slot.
[[nodiscard]] Result<void> check_captures(const Interface& interface, const Captures& captures);

/// The same of one probe, against the first capture.
[[nodiscard]] Result<void> check_probe(const Interface& interface, const CapturedGraph& first,
                                       const ScalarProbe& probe);

} // namespace warmgraph
