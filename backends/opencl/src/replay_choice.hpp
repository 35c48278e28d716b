// Chooses how a device replays graphs.
#pragma once

#include "core.hpp"

namespace warmgraph::backends::opencl {

/// Reads WARMGRAPH_OPENCL_REPLAY = auto (default), command_buffer or enqueue; invalid_argument for other values.
[[nodiscard]] Result<ReplayChoice> choose_replay(const CommandBufferSupport& support, bool is_pocl);

} // namespace warmgraph::backends::opencl
