#pragma once

namespace warmgraph::backends::cuda::bulk {

/// kernels.ptx, ending with a zero.
extern const char* const k_kernels_ptx;

} // namespace warmgraph::backends::cuda::bulk
