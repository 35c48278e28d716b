// A kernel that has no variables and calls no function.
extern "C" __global__ void add_one(float* y)
{
    y[blockIdx.x * blockDim.x + threadIdx.x] += 1;
}
