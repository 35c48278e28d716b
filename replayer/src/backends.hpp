// The backends of this library, listed in one place: WARMGRAPH_REPLAY_BACKENDS (CMake) names them.
#pragma once

#include <memory>
#include <string_view>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::replayer {

/// "cuda, opencl". Static.
[[nodiscard]] std::string_view backend_names() noexcept;

/// As backends::open_device(). unsupported for a backend that is not in this library.
[[nodiscard]] Result<std::shared_ptr<backends::Device>> open_device(std::string_view id);

} // namespace warmgraph::replayer
