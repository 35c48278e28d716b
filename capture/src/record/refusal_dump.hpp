// A text file about a refused recording, for a bug report.
#pragma once

#include "warmgraph/capture/adoption.hpp"

namespace warmgraph {

/// Writes the reason, the memory, and the nodes of both captures to a new file in the folder that the variable
/// WARMGRAPH_DUMP names; makes the folder. Words of parameters that are zero in both captures are left out. Does
/// nothing without the variable. A failure is only logged. `second` may be null.
void dump_refusal(const CaptureTarget& target, const Frame& frame, const AdoptedCapture& first,
                  const AdoptedCapture* second, const Error& why) noexcept;

} // namespace warmgraph
