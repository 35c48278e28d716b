// One check of a kernel's parameters for launches, for graphs that are built from entries, and for updates: the
// driver reads as many bytes as the kernel takes, without asking whether they are there.
#pragma once

#include "code/module.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

/// That they have the number and sizes that the kernel takes; a packed buffer holds the last one. invalid_argument
/// names the one. Addresses are not looked at.
[[nodiscard]] Result<void> check_params(const RawKernel& kernel, const KernelInfo& info);

} // namespace warmgraph::backends::cuda
