// A function for programs that capture graphs themselves.
#pragma once

namespace warmgraph::capture {

/// Fills 128 KiB of this thread's stack below the caller with zeros; does nothing if too little stack is left. Later
/// calls that copy stack bytes which they did not write then copy zeros.
void clear_stack_below() noexcept;

} // namespace warmgraph::capture
