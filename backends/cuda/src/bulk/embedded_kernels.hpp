#pragma once

namespace warmgraph::backends::cuda::bulk {

/// kernels.ptx, ending with a zero.
extern const char* const k_kernels_ptx;
/// kernels.fatbin: the same for the devices that are met most, compiled.
extern const unsigned char k_kernels_fatbin[];

} // namespace warmgraph::backends::cuda::bulk
