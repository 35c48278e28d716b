// Functions that are called through pointers. A pointer is an argument, or is read from a variable.
typedef float (*Function)(float);
__device__ __noinline__ float add_one(float v) { return v + 1; }
__device__ __noinline__ float twice(float v) { return v + v; }
__device__ Function table[2] = {add_one, twice};

extern "C" __global__ void pointers(Function* to)
{
    to[0] = add_one;
    to[1] = twice;
}

extern "C" __global__ void by_pointer(const float* x, float* y, Function function)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = function(x[i]);
}

extern "C" __global__ void by_row(const float* x, float* y, int row)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = table[row](x[i]);
}
