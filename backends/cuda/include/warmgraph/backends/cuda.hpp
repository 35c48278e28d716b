// The CUDA backend. It loads the driver API at run time, so one binary runs with and without a driver.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Names or paths of the libraries. If a member is empty, its environment variable is used, else the usual names,
/// newest first.
struct CudaOptions {
    std::string driver{}; ///< variable $WARMGRAPH_CUDA_DRIVER; usual name libcuda.so.1
    std::string nvrtc{};  ///< variable $WARMGRAPH_NVRTC; libnvrtc.so.13 ...; loaded when the first program is compiled
    std::string
        cupti{}; ///< variable $WARMGRAPH_CUPTI; libcupti.so.13 ...; loaded by DeviceRecording::prepare_recording
    /// Threads for an upload of 8 MiB or more; default: half of the cores, at most 6. Below 2, the driver copies.
    std::optional<unsigned> upload_lanes{};
};

/// Loads nothing. Backend::devices and Backend::open load the driver and report what is missing, with the cure.
[[nodiscard]] std::shared_ptr<Backend> make_cuda_backend(CudaOptions options = {});

/// Makes the same backend without CUPTI and NVRTC: its devices cannot compile or capture (unsupported). A library that
/// calls only this function links the component backend_cuda_replay.
[[nodiscard]] std::shared_ptr<Backend> make_cuda_replay_backend(CudaOptions options = {});

/// Makes a compiler for an architecture ("sm_90") with NVRTC, without a driver or a GPU. invalid_argument lists the
/// architectures that NVRTC supports; not_found: NVRTC is missing.
[[nodiscard]] Result<std::unique_ptr<AheadCompiler>> make_cuda_ahead_compiler(const std::string& architecture,
                                                                              const CudaOptions& options = {});

} // namespace warmgraph::backends
