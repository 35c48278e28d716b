// The list of the backends in this build.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Returns the names of the backends in this build, e.g. "opencl, cuda", as a static text.
[[nodiscard]] std::string_view built_backend_names() noexcept;

/// Makes new backend objects at each call; the caller owns them.
[[nodiscard]] std::vector<std::shared_ptr<Backend>> make_built_backends();

/// Registers the built backends at the first call, then does open_device(). unsupported: this build lacks the backend.
[[nodiscard]] Result<std::shared_ptr<Device>> open_built_device(std::string_view id);

/// Calls Backend::prepare_recording of the named backend ("cuda"). unsupported: this build lacks the backend; not_found
/// lists the backends.
[[nodiscard]] Result<void> prepare_built_recording(std::string_view backend);

/// Makes a compiler for `target`, a CUDA architecture ("sm_90"), whose device need not be present. unsupported: this
/// build lacks the backend, or it compiles only for present devices.
[[nodiscard]] Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(std::string_view backend,
                                                                         const std::string& target);

} // namespace warmgraph::backends
