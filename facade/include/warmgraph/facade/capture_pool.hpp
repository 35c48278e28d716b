// Memory for the pools of captures that a framework makes, for the C interface.
#pragma once

#include <memory>

#include "warmgraph/backends/recording.hpp"
#include "warmgraph/device.hpp"

namespace warmgraph {

/// Opens a pool on a device, which lives as long as the pool. Throws Exception: unsupported on a device without virtual
/// addresses.
[[nodiscard]] std::shared_ptr<backends::CapturePool> open_capture_pool(const Device& device,
                                                                       backends::PoolMemory memory);

} // namespace warmgraph
