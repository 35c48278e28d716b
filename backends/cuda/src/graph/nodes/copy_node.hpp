// Copies, as graph nodes and in streams: raw work to the driver's structure and back.
#pragma once

#include <span>

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

/// One row is a plain copy (pitches 0), which the driver's exec-update accepts and whose size no pitch limits.
[[nodiscard]] CUDA_MEMCPY3D to_native(const RawCopy& copy) noexcept;

/// RawCopy, or RawEmpty where nothing is copied. not_recordable: arrays, host memory that is not page-locked.
/// `allocations`: memory that the graph itself allocates, which the driver does not know before a launch.
[[nodiscard]] Result<RawWork> read_copy(const Core& core, CUgraphNode node,
                                        std::span<const RawAllocation> allocations = {});
[[nodiscard]] Result<void> add(AddCall& call, const RawCopy& copy);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawCopy& before, const RawCopy& after);

} // namespace warmgraph::backends::cuda
