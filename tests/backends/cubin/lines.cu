// The source of lines.cubin and mercury.cubin (see README.md).
__managed__ int d_managed = 4;
__device__ int d_value = 5;
__device__ int* d_pointer = &d_value;

extern "C" __global__ void first(int* out) { out[threadIdx.x] = d_managed; }
extern "C" __global__ void second(int** out)
{
    out[threadIdx.x] = d_pointer;
    d_pointer = out[threadIdx.x + 1];
}
