// What a replay could miss: variables of device code that the program may write or read by itself.
#pragma once

#include <span>
#include <string>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay {

/// not_recordable, naming the variable, where the program asked for the address of one that this code has
/// (Device::exposed_variables) and nobody vouches for it (`vouched`; "*": all are).
[[nodiscard]] Result<void> check_exposed(backends::Device& device, ByteView image,
                                         std::span<const std::string> vouched);

/// The same for all code of an entry. Where `images` cannot give an image, its error.
[[nodiscard]] Result<void> check_exposed(backends::Device& device, const cachefmt::Graph& graph,
                                         const ImageSource& images, std::span<const std::string> vouched);

} // namespace warmgraph::replay
