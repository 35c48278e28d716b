// OpenCL 1.2 and later on any device. On a machine without an accelerator, PoCL is the default.
#pragma once

#include <memory>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

[[nodiscard]] std::shared_ptr<Backend> make_opencl_backend();

} // namespace warmgraph::backends
