// Helps programs that capture graphs themselves.
#pragma once

namespace warmgraph::capture {

/// Fills 128 KiB of this thread's stack below the caller with zeros; does nothing if too little stack is left. Later
/// calls then pass on zeros where they read stack bytes that they did not write.
void clear_stack_below() noexcept;

} // namespace warmgraph::capture
