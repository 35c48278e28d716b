// The kernels of backends/cuda/src/bulk/kernels.cu, compiled for the host. The fake refuses PTX, as a driver without its compiler
// does, until a test lets it take that one text (fake_cuda_take_bulk_kernels).
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <memory>

#include <cuda.h>

namespace fake_cuda {

/// Runs a grid's threads one after another; `work` is the one argument.
using BulkRun = std::function<void(const std::array<unsigned, 3>& grid, const std::array<unsigned, 3>& block,
                                   const std::byte* work)>;

/// The module of those kernels. Null where `data` is another text, or tests have not asked for it.
[[nodiscard]] std::unique_ptr<CUmod_st> make_bulk_module(const void* data);

} // namespace fake_cuda
