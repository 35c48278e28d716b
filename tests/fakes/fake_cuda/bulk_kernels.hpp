// The kernels of backends/cuda/src/bulk/kernels.cu, compiled for the host. The fake refuses PTX, like a driver that has
// no PTX compiler. A test can enable this one text (fake_cuda_take_bulk_kernels).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include <cuda.h>

namespace fake_cuda {

/// Runs the threads of a grid one after another. `work` is the kernel's only argument.
using BulkRun = std::function<void(const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
                                   const std::byte* work)>;

/// The module of these kernels. Null when `data` is another text, or when the test has not enabled the kernels.
[[nodiscard]] std::unique_ptr<CUmod_st> make_bulk_module(const void* data);

} // namespace fake_cuda
