// Chooses a device, in the same way for every backend.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Returns the index of the device that `selector` means: empty is the first, digits are an index, other text is part
/// of a name or detail (case-insensitive; the first match). not_found lists the devices.
[[nodiscard]] Result<std::size_t> select_device(std::string_view selector, std::span<const DeviceInfo> devices);

} // namespace warmgraph::backends
