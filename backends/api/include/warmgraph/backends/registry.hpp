// Backends by name. built.hpp registers those that were built; tests register the fake.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Thread-safe. A second backend of one name replaces the first.
void register_backend(std::shared_ptr<Backend> backend);
[[nodiscard]] std::vector<std::shared_ptr<Backend>> backends();

/// The backend's name in a device's id: "opencl" of "opencl:0".
[[nodiscard]] std::string_view backend_of(std::string_view id) noexcept;

/// "opencl:0", "opencl" (its first device), "opencl:pocl". Opening the same device twice gives the same object.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(std::string_view id);

} // namespace warmgraph::backends
