// Helpers for tests that are built twice: for a GPU, and for the fake driver (WARMGRAPH_FAKE_CUDA), which runs the same
// calls on the host. Both have the kernels of the conformance suite.
#pragma once

#ifdef WARMGRAPH_FAKE_CUDA
#include <cstdlib>

#include "fake_cuda/steering.hpp"
#else
#include "cuda_program.hpp"
#endif

namespace warmgraph::test {

#ifdef WARMGRAPH_FAKE_CUDA
inline constexpr const char* k_driver_library = WARMGRAPH_FAKE_CUDA;
inline constexpr const char* k_program = k_fake_cuda_program;
#else
inline constexpr const char* k_driver_library = "libcuda.so.1";
inline constexpr const char* k_program = backends::test::k_cuda_program;
#endif

/// Chooses the driver of the facade's CUDA backend. Call it before the first device is opened, because this makes the
/// backend.
inline void choose_driver()
{
#ifdef WARMGRAPH_FAKE_CUDA
    for (const char* name : {"WARMGRAPH_CUDA_DRIVER", "WARMGRAPH_NVRTC", "WARMGRAPH_CUPTI"})
        ::setenv(name, WARMGRAPH_FAKE_CUDA, 1);
#endif
}

} // namespace warmgraph::test
