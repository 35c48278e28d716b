// Checks work and enqueues it in a stream, capturing or not.
#pragma once

#include "code/kernel_params.hpp"
#include "code/module.hpp"
#include "device/core.hpp"
#include "device/memory.hpp"
#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::cuda {

/// Finds the launch's kernel. invalid_argument: no module, a module of another backend, or no such kernel in it.
[[nodiscard]] Result<const KernelInfo*> info_of(const RawKernel& work);

/// Checks everything that is known before the launch; invalid_argument names the fault.
[[nodiscard]] Result<const KernelInfo*> check_launch(const RawKernel& work, const Core& core, const Memory& memory,
                                                     Touch touch);
[[nodiscard]] Result<void> check_copy(const RawCopy& work, const Memory& memory, Touch touch);
[[nodiscard]] Result<void> check_fill(const RawFill& work, const Memory& memory, Touch touch);

/// Raises the limits that the launch needs. Function attributes belong to the loaded kernel, not to one launch, so
/// limits are only raised: launches from other threads may need them.
[[nodiscard]] Result<void> prepare_kernel(const Core& core, const KernelInfo& info, const RawKernel& work);

// The functions below REQUIRE: the work is checked, a kernel is prepared, and the context is current.

/// Enqueues a kernel. `params` is storage that launches reuse.
[[nodiscard]] Result<void> enqueue_kernel(const Core& core, CUstream stream, const KernelInfo& info,
                                          const RawKernel& work, KernelParams& params);
[[nodiscard]] Result<void> enqueue_copy(const Core& core, CUstream stream, const RawCopy& work);
[[nodiscard]] Result<void> enqueue_fill(const Core& core, CUstream stream, const RawFill& work);

} // namespace warmgraph::backends::cuda
