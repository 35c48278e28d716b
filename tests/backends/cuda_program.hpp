#pragma once

namespace warmgraph::backends::test {

/// The same kernels as in k_opencl_program. Here `sum` uses dynamic shared memory for its scratch.
inline constexpr const char* k_cuda_program = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void iota(int* x, int n) { int i = INDEX; if (i < n) x[i] = i; }
extern "C" __global__ void add_scalar(int* x, int amount, int n) { int i = INDEX; if (i < n) x[i] += amount; }
extern "C" __global__ void scale(int* x, int factor, int n) { int i = INDEX; if (i < n) x[i] *= factor; }
extern "C" __global__ void copy(int* to, const int* from, int n) { int i = INDEX; if (i < n) to[i] = from[i]; }
extern "C" __global__ void add(int* out, const int* a, const int* b, int n)
{
    int i = INDEX;
    if (i < n) out[i] = a[i] + b[i];
}
extern "C" __global__ void sum(int* out, const int* x, int n)
{
    extern __shared__ int scratch[];
    int me = static_cast<int>(threadIdx.x), all = static_cast<int>(blockDim.x), total = 0;
    for (int i = me; i < n; i += all) total += x[i];
    scratch[me] = total;
    __syncthreads();
    if (me != 0) return;
    for (int i = 1; i < all; ++i) total += scratch[i];
    out[0] = total;
}
)";

} // namespace warmgraph::backends::test
