// The source of several.cubin (see README.md).
__device__ float d_zero[64];
__device__ int d_set[3] = {1, 2, 3};
__constant__ float c_zero[5];
__constant__ int c_set[2] = {7, 8};
__device__ const double d_table[2] = {0.5, 0.25};
static __device__ int d_local = 5; // has a local symbol, which cuModuleGetGlobal does not find

__device__ __noinline__ float shared_helper(float x)
{
    return x * c_zero[1] + d_zero[static_cast<int>(x) & 63];
}

__device__ __noinline__ float own_helper(float x)
{
    return x - static_cast<float>(d_set[static_cast<int>(x) % 3]);
}

// This function is called through a pointer: a variable has its address.
__device__ __noinline__ float pointed_to(float x) { return x + 3.0f; }
__device__ float (*d_function)(float) = pointed_to;

extern "C" __global__ void scale(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = shared_helper(in[i]) * static_cast<float>(c_set[0]);
}

extern "C" __global__ void shift(float* out, const float* in, int n)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = own_helper(shared_helper(in[i])) + static_cast<float>(c_set[1] + d_local);
    if (i == 0) d_local++;
}

extern "C" __global__ void sum(float* out, const float* in)
{
    extern __shared__ float dynamic[];
    __shared__ float fixed[32];
    dynamic[threadIdx.x] = in[threadIdx.x];
    fixed[threadIdx.x & 31] = in[threadIdx.x] + static_cast<float>(d_table[threadIdx.x & 1]);
    __syncthreads();
    if (threadIdx.x == 0) out[0] = dynamic[1] + fixed[1];
}

extern "C" __global__ void through_pointer(float* out) { out[threadIdx.x] = d_function(out[threadIdx.x]); }

// A kernel with a switch. The compiler puts its jump table into the kernel's own constant bank.
extern "C" __global__ void jumps(float* out, int which)
{
    switch (which) {
    case 0: out[0] = sinf(out[1]); break;
    case 1: out[1] = cosf(out[2]); break;
    case 2: out[2] = out[3] / out[4]; break;
    case 3: out[3] = sqrtf(out[4]); break;
    case 4: out[4] = tanf(out[5]); break;
    case 5: out[5] = expf(out[6]); break;
    case 6: out[6] = logf(out[7]); break;
    case 7: out[7] = atomicAdd(out + 8, 1.0f); break;
    default: out[8] = 1.0f;
    }
}

template <class T>
__global__ void mangled(T* out)
{
    T local[16];
    for (int i = 0; i < 16; ++i) local[i] = out[i];
    out[threadIdx.x] = local[static_cast<int>(out[0]) & 15];
}
template __global__ void mangled<float>(float*);
template __global__ void mangled<double>(double*);
