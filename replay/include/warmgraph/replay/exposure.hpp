// Checks for device variables that the program may write or read itself without a replay noticing it.
#pragma once

#include <span>
#include <string>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

/// Fails with not_recordable, whose message names the variable, if the program asked for the address of a variable of
/// this code (Device::exposed_variables) that is not in `vouched` ("*": all variables).
[[nodiscard]] Result<void> check_exposed(backends::Device& device, ByteView image,
                                         std::span<const std::string> vouched);

/// Does the same for all code of an entry. Returns the error of `images` if an image is not available.
[[nodiscard]] Result<void> check_exposed(backends::Device& device, const cachefmt::Graph& graph,
                                         const ImageSource& images, std::span<const std::string> vouched);

} // namespace warmgraph::replay
