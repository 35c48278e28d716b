// Backends by name. built.hpp registers the backends of this build; tests register the fake.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Thread-safe. A backend replaces an earlier one of the same name.
void register_backend(std::shared_ptr<Backend> backend);
[[nodiscard]] std::vector<std::shared_ptr<Backend>> backends();

/// The backend's name in a device's id: "opencl" for "opencl:0".
[[nodiscard]] std::string_view backend_of(std::string_view id) noexcept;

/// Opens a device by its id, e.g. "opencl:0", "opencl" (the first device) or "opencl:pocl". Opening the same device
/// twice gives the same object.
[[nodiscard]] Result<std::shared_ptr<Device>> open_device(std::string_view id);

} // namespace warmgraph::backends
