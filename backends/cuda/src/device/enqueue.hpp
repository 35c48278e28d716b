// Work into a stream, capturing or not: what is checked, and how it is given to the driver.
#pragma once

#include "code/kernel_params.hpp"
#include "code/module.hpp"
#include "device/core.hpp"
#include "device/memory.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

/// The launch's kernel. invalid_argument: no module, another backend's, no such kernel in it.
[[nodiscard]] Result<const KernelInfo*> info_of(const RawKernel& work);

/// Everything that can be known without running it; invalid_argument says what is wrong.
[[nodiscard]] Result<const KernelInfo*> check_launch(const RawKernel& work, const Core& core, const Memory& memory,
                                                     Touch touch);
[[nodiscard]] Result<void> check_copy(const RawCopy& work, const Memory& memory, Touch touch);
[[nodiscard]] Result<void> check_fill(const RawFill& work, const Memory& memory, Touch touch);

/// Raises the limits that the launch needs. Function attributes belong to the loaded kernel, not to a launch: limits are
/// only ever raised here, so that launches from several threads do not take them from each other.
[[nodiscard]] Result<void> prepare_kernel(const Core& core, const KernelInfo& info, const RawKernel& work);

// REQUIRES, of the rest: the work is checked, a kernel prepared, and the context current.

/// `params` has room from one launch to the next.
[[nodiscard]] Result<void> enqueue_kernel(const Core& core, CUstream stream, const KernelInfo& info,
                                          const RawKernel& work, KernelParams& params);
[[nodiscard]] Result<void> enqueue_copy(const Core& core, CUstream stream, const RawCopy& work);
[[nodiscard]] Result<void> enqueue_fill(const Core& core, CUstream stream, const RawFill& work);

} // namespace warmgraph::backends::cuda
