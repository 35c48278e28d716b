// Variables that headers put into global memory: empty objects of cuda::std and Thrust, and the table that sinf reads.
#include <cuda/std/utility>
#include <thrust/execution_policy.h>

extern "C" __global__ void sine(float* y) { y[threadIdx.x] = sinf(y[threadIdx.x]); }
