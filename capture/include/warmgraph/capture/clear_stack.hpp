// For programs that capture graphs themselves.
#pragma once

namespace warmgraph::capture {

/// Fills 128 KiB of this thread's stack below the caller with zeros, or none where there is no room to spare: what
/// later calls find there and do not write, they hand on as zeros.
void clear_stack_below() noexcept;

} // namespace warmgraph::capture
