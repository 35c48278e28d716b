// The order of an adopted graph's memory pools may differ between captures: PyTorch's snapshot sorts the pools by
// address, so two workspaces of one size may change places.
#pragma once

#include "classify/classify.hpp"

namespace warmgraph {

/// Puts moved.scratch in the order of first.scratch. Pools of one size are matched by words: a word points into a pool
/// in `first` and into a pool in `moved`, at the same offset. Without such words the order stays. The match is only a
/// guess: with a wrong order, words follow no region and classify() refuses them. Changes nothing if the captures'
/// pools differ in their sizes.
void order_scratch(const CapturedGraph& first, CapturedGraph& moved);

} // namespace warmgraph
