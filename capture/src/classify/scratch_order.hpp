// Memory pools of an adopted graph are listed by whoever captured it, in an order that may be another one each time: PyTorch's
// snapshot sorts them by address, and two workspaces of one size change places.
#pragma once

#include "classify/classify.hpp"

namespace warmgraph {

/// Puts moved.scratch in the order of first.scratch: pools of one size are told apart by the words that lie in one of them in
/// `first` and, at the same offset, in one of `moved`. Where words say nothing the order stays. It proves nothing: a wrong
/// order leaves words that follow no region. Pools of other sizes than the first's are left as they are.
void order_scratch(const CapturedGraph& first, CapturedGraph& moved);

} // namespace warmgraph
