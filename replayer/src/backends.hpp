// The backends of this library. WARMGRAPH_REPLAY_BACKENDS (CMake) names them.
#pragma once

#include <memory>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::replayer {

/// Returns the backends' names, such as "cuda, opencl". The text is static.
[[nodiscard]] std::string_view backend_names() noexcept;

/// As backends::open_device(). Fails with unsupported if this library does not have the backend.
[[nodiscard]] Result<std::shared_ptr<backends::Device>> open_device(std::string_view id);

} // namespace warmgraph::replayer
