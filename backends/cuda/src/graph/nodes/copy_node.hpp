// Copies in graphs and streams: converts between raw work and the driver's structure.
#pragma once

#include <span>

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// A copy of one row becomes a plain copy (pitches 0): the driver can update it in an exec, and no pitch limits its
/// size.
[[nodiscard]] CUDA_MEMCPY3D to_native(const RawCopy& copy) noexcept;

/// Returns RawCopy, or RawEmpty if nothing is copied. not_recordable: arrays, host memory that is not page-locked.
/// `allocations` is memory that the graph itself allocates, which the driver does not know before a launch.
[[nodiscard]] Result<RawWork> read_copy(const Core& core, CUgraphNode node,
                                        std::span<const RawAllocation> allocations = {});
[[nodiscard]] Result<void> add(AddCall& call, const RawCopy& copy);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawCopy& before, const RawCopy& after);

} // namespace warmgraph::backends::cuda
