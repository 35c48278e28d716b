// A kernel without variables and calls.
extern "C" __global__ void add_one(float* y)
{
    y[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
