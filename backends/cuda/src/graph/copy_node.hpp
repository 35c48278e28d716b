// Copies and fills, as graph nodes and in streams: raw work to the driver's structures and back.
#pragma once

#include "core.hpp"

namespace warmgraph::backends::cuda {

/// One row is a plain copy (pitches 0), which the driver's exec-update accepts and whose size no pitch limits.
[[nodiscard]] CUDA_MEMCPY3D to_native(const RawCopy& copy) noexcept;
/// unsupported: a pattern of 8 or 16 bytes that does not repeat itself within 4.
[[nodiscard]] Result<CUDA_MEMSET_NODE_PARAMS> to_native(const RawFill& fill);

/// RawCopy, or RawEmpty where nothing is copied. not_recordable: arrays, host memory that is not page-locked.
/// `allocations`: memory that the graph itself allocates, which the driver does not know before a launch.
[[nodiscard]] Result<RawWork> read_copy(const Core& core, CUgraphNode node,
                                        std::span<const RawAllocation> allocations = {});
/// RawFill, or RawEmpty where nothing is written.
[[nodiscard]] Result<RawWork> read_fill(const Core& core, CUgraphNode node);

} // namespace warmgraph::backends::cuda
