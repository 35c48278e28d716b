// The semantic check of a kernel launch.
#pragma once

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

[[nodiscard]] Result<void> check_kernel(const KernelNode& kernel, const Graph& graph, const Limits& limits);

} // namespace warmgraph::cachefmt
