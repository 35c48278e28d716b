#pragma once

namespace warmgraph::backends::cuda::bulk {

/// The text of kernels.ptx, zero-terminated.
extern const char* const k_kernels_ptx;
/// kernels.fatbin: the same kernels, compiled for the most common devices.
extern const unsigned char k_kernels_fatbin[];

} // namespace warmgraph::backends::cuda::bulk
