// How a device is chosen, the same in every backend.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Position of the device that `selector` means: empty is the first, digits an index, anything else part of its name or
/// detail (case-insensitive; the first that matches). not_found lists what there is.
[[nodiscard]] Result<std::size_t> select_device(std::string_view selector, std::span<const DeviceInfo> devices);

} // namespace warmgraph::backends
