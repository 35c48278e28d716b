// Device variables that the program may write or read by itself, unnoticed by a replay.
#pragma once

#include <span>
#include <string>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

/// not_recordable names a variable of this code whose address the program asked for (Device::exposed_variables) and
/// that is not in `vouched` ("*": all variables).
[[nodiscard]] Result<void> check_exposed(backends::Device& device, ByteView image,
                                         std::span<const std::string> vouched);

/// The same for all code of an entry. Returns the error of `images` if an image is not available.
[[nodiscard]] Result<void> check_exposed(backends::Device& device, const cachefmt::Graph& graph,
                                         const ImageSource& images, std::span<const std::string> vouched);

} // namespace warmgraph::replay
