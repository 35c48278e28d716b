// How graphs are replayed on a device.
#pragma once

#include "core.hpp"

namespace warmgraph::backends::opencl {

/// WARMGRAPH_OPENCL_REPLAY = auto (default), command_buffer or enqueue; invalid_argument for anything else.
[[nodiscard]] Result<ReplayChoice> choose_replay(const CommandBufferSupport& support, bool is_pocl);

} // namespace warmgraph::backends::opencl
