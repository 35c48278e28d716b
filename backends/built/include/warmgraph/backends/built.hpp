// The backends of this build, listed in one place.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// "opencl, cuda". Static.
[[nodiscard]] std::string_view built_backend_names() noexcept;

/// Objects of the caller's own: another call gives others.
[[nodiscard]] std::vector<std::shared_ptr<Backend>> make_built_backends();

/// As open_device(), of these too: they are registered at the first call. unsupported: another build has the backend.
[[nodiscard]] Result<std::shared_ptr<Device>> open_built_device(std::string_view id);

/// Backend::prepare_recording, by the backend's name ("cuda"). unsupported: another build has it; not_found lists what
/// there is.
[[nodiscard]] Result<void> prepare_built_recording(std::string_view backend);

/// To compile for `target` without its device: an architecture of CUDA's ("sm_90"). unsupported: another build has the
/// backend, or it compiles for its own devices alone.
[[nodiscard]] Result<std::unique_ptr<AheadCompiler>> make_ahead_compiler(std::string_view backend,
                                                                         const std::string& target);

} // namespace warmgraph::backends
