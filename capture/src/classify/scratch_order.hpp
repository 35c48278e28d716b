// The order of an adopted graph's memory pools may differ between captures: PyTorch's snapshot sorts them by address,
// so two workspaces of one size may change places.
#pragma once

#include "classify/classify.hpp"

namespace warmgraph {

/// Puts moved.scratch in the order of first.scratch. Pools of one size are matched by words that point into one of them
/// in `first` and, at the same offset, into one in `moved`. Without such words the order stays. This proves nothing; a
/// wrong order leaves words that follow no region. Pools whose sizes differ from the first's stay unchanged.
void order_scratch(const CapturedGraph& first, CapturedGraph& moved);

} // namespace warmgraph
