// The CUDA backend, over the driver API loaded at run time: one binary runs with and without a driver.
#pragma once

#include <memory>
#include <string>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

/// Libraries by file name or path; empty: the environment variable, else the usual names, newest first.
struct CudaOptions {
    std::string driver{}; ///< $WARMGRAPH_CUDA_DRIVER, libcuda.so.1
    std::string nvrtc{};  ///< $WARMGRAPH_NVRTC, libnvrtc.so.13 ...: loaded when the first program is compiled
    std::string cupti{};  ///< $WARMGRAPH_CUPTI, libcupti.so.13 ...: loaded by Device::prepare_recording
};

/// Loads nothing yet: Backend::devices and Backend::open do, and say what is missing and the cure.
[[nodiscard]] std::shared_ptr<Backend> make_cuda_backend(CudaOptions options = {});

/// For `doctor`: which NVRTC compiles sources here, or what is missing and the cure. Loads it.
[[nodiscard]] std::string find_nvrtc(const CudaOptions& options = {});
/// The same of CUPTI, with which graphs of other libraries' kernels are recorded.
[[nodiscard]] std::string find_cupti(const CudaOptions& options = {});

} // namespace warmgraph::backends
