// Kernels of a small Llama-style transformer, f32, CUDA C++ for NVRTC (no includes). Like kernels.cl, except for the
// products of matrices: cuBLASLt computes them, but decode's products may be computed here if that is faster.
//
// Sizes come as build options: DIM, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, VOCAB, MAX_SEQ, NORM_EPS, ROPE_THETA, and the
// geometry that config.hpp describes: NORM_ITEMS, and LANES and ROWS, which are tuned (LANES 0: cuBLASLt computes the
// products). All matrices are row-major.
//
// No grid depends on the position or on the length of the prompt: a recorded graph keeps its grids, and gets both as
// plain arguments. Kernels mask what lies outside.

#define GROUP (HEADS / KV_HEADS) /* query heads that share one key/value head */

// The cache of one layer: keys, then values, each [KV_HEADS][MAX_SEQ][HEAD_DIM].
#define KV_AT(head, position) (((head) * MAX_SEQ + (position)) * HEAD_DIM)
#define KV_VALUES (KV_HEADS * MAX_SEQ * HEAD_DIM)

namespace {

__device__ int clamped(int value, int low, int high) { return min(max(value, low), high); }

} // namespace

// --- rows of the residual stream -----------------------------------------------------------------------------------

// y[row][DIM] = table[tokens[row]][DIM]. Blocks: one for each row, DIM threads. An id outside the vocabulary reads the
// nearest row rather than foreign memory.
extern "C" __global__ void embed(const float* __restrict__ table, const int* __restrict__ tokens, float* __restrict__ y)
{
    const int row = blockIdx.x;
    const int i = threadIdx.x;
    y[row * DIM + i] = table[clamped(tokens[row], 0, VOCAB - 1) * DIM + i];
}

// y[row] = x[row] / sqrt(mean(x[row]^2) + eps) * weight, rows of DIM. Blocks: one for each row, NORM_ITEMS threads.
extern "C" __global__ void rmsnorm(const float* __restrict__ x, const float* __restrict__ weight, float* __restrict__ y)
{
    __shared__ float sums[NORM_ITEMS];
    const int row = blockIdx.x * DIM;
    const int item = threadIdx.x;
    float sum = 0.0f;
    for (int i = item; i < DIM; i += NORM_ITEMS)
        sum += x[row + i] * x[row + i];
    sums[item] = sum;
    __syncthreads();
    for (int step = NORM_ITEMS / 2; step > 0; step /= 2) {
        if (item < step)
            sums[item] += sums[item + step];
        __syncthreads();
    }
    const float scale = 1.0f / sqrtf(sums[0] / DIM + NORM_EPS);
    for (int i = item; i < DIM; i += NORM_ITEMS)
        y[row + i] = x[row + i] * scale * weight[i];
}

// y[DIM] = x[length - 1], the last real row of `rows`. One block of DIM threads.
extern "C" __global__ void take_last_row(const float* __restrict__ x, float* __restrict__ y, int length, int rows)
{
    const int i = threadIdx.x;
    y[i] = x[(clamped(length, 1, rows) - 1) * DIM + i];
}

// gate[i] = silu(gate[i]) * up[i], the activation of SwiGLU. Blocks cover rows * HIDDEN.
extern "C" __global__ void swiglu(float* __restrict__ gate, const float* __restrict__ up)
{
    const int i = blockIdx.x * blockDim.x + threadIdx.x;
    gate[i] = gate[i] / (1.0f + expf(-gate[i])) * up[i];
}

// --- matrix times vector (decode) --------------------------------------------------------------------------------------

#if LANES

namespace {

// The product of one row of w[out][in] and x[in], for all LANES threads of the row: neighbours in one warp. `in` is a multiple
// of 4.
__device__ float row_dot(const float4* __restrict__ w, const float4* __restrict__ x, int row, int in)
{
    float sum = 0.0f;
    for (int i = threadIdx.x; i < in / 4; i += LANES) {
        const float4 a = w[row * (in / 4) + i];
        const float4 b = x[i];
        sum += a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w;
    }
    for (int step = LANES / 2; step > 0; step /= 2)
        sum += __shfl_xor_sync(0xffffffffu, sum, step, LANES);
    return sum;
}

} // namespace

// y[out] = w[out][in] x[in]. Blocks: out / ROWS of (LANES, ROWS) threads, whole warps; LANES is a power of two up to 32.
extern "C" __global__ void matvec(const float4* __restrict__ w, const float4* __restrict__ x, float* __restrict__ y, int in)
{
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const float sum = row_dot(w, x, row, in);
    if (threadIdx.x == 0)
        y[row] = sum;
}

// y[out] += w[out][in] x[in]: a projection back into the residual stream. Geometry as matvec.
extern "C" __global__ void matvec_add(const float4* __restrict__ w, const float4* __restrict__ x, float* __restrict__ y,
                                      int in)
{
    const int row = blockIdx.x * ROWS + threadIdx.y;
    const float sum = row_dot(w, x, row, in);
    if (threadIdx.x == 0)
        y[row] += sum;
}

#endif // LANES

// --- attention -------------------------------------------------------------------------------------------------------

namespace {

// The pair (2 * pair, 2 * pair + 1) of one head, turned by position * theta^(-2 pair / HEAD_DIM).
__device__ float2 rotated(float2 value, int pair, int position)
{
    const float angle = position * powf(ROPE_THETA, -2.0f * pair / HEAD_DIM);
    const float c = cosf(angle);
    const float s = sinf(angle);
    return make_float2(value.x * c - value.y * s, value.x * s + value.y * c);
}

// The largest (or the sum) of one value of each thread; all threads get it. `scratch` holds HEAD_DIM floats.
__device__ float block_max(float* scratch, float mine)
{
    scratch[threadIdx.x] = mine;
    __syncthreads();
    float result = scratch[0];
    for (int i = 1; i < HEAD_DIM; ++i)
        result = fmaxf(result, scratch[i]);
    __syncthreads();
    return result;
}

__device__ float block_sum(float* scratch, float mine)
{
    scratch[threadIdx.x] = mine;
    __syncthreads();
    float result = 0.0f;
    for (int i = 0; i < HEAD_DIM; ++i)
        result += scratch[i];
    __syncthreads();
    return result;
}

} // namespace

// Rotary embedding of the queries in place: q[rows][HEADS][HEAD_DIM], row r is at position first + r.
// Blocks: (rows, HEADS) of HEAD_DIM / 2 threads.
extern "C" __global__ void rope(float2* __restrict__ q, int first)
{
    const int row = blockIdx.x;
    const int pair = threadIdx.x;
    const int at = (row * HEADS + blockIdx.y) * (HEAD_DIM / 2) + pair;
    q[at] = rotated(q[at], pair, first + row);
}

// Writes rows below `length` of k (rotated) and v, both [rows][KV_HEADS][HEAD_DIM], into one layer's cache at positions
// first + row. Blocks: (rows, KV_HEADS) of HEAD_DIM / 2 threads.
extern "C" __global__ void store_kv(const float2* __restrict__ k, const float2* __restrict__ v,
                                    float2* __restrict__ cache, int first, int length)
{
    const int row = blockIdx.x;
    const int head = blockIdx.y;
    const int pair = threadIdx.x;
    const int position = first + row;
    if (row >= length || position >= MAX_SEQ)
        return;
    const int from = (row * KV_HEADS + head) * (HEAD_DIM / 2) + pair;
    const int to = KV_AT(head, position) / 2 + pair;
    cache[to] = rotated(k[from], pair, position);
    cache[KV_VALUES / 2 + to] = v[from];
}

// Causal attention over one layer's cache: y[rows][HEADS][HEAD_DIM] = softmax(q k^T / sqrt(HEAD_DIM)) v. Row r is at
// position first + r and sees the positions 0 .. first + r; rows from `length` on are padding and become zero.
// Blocks: (rows, HEADS) of HEAD_DIM threads; a thread scores every HEAD_DIM-th key, then owns one column of the values.
extern "C" __global__ void attention(const float* __restrict__ q, const float* __restrict__ cache,
                                     float* __restrict__ y, int first, int length)
{
    __shared__ float query[HEAD_DIM];
    __shared__ float scores[MAX_SEQ];
    __shared__ float scratch[HEAD_DIM];
    const int row = blockIdx.x;
    const int head = blockIdx.y;
    const int item = threadIdx.x;
    const int keys = row < length ? min(first + row + 1, MAX_SEQ) : 0;
    const float* k = cache + KV_AT(head / GROUP, 0);
    const float* v = k + KV_VALUES;

    query[item] = q[(row * HEADS + head) * HEAD_DIM + item];
    __syncthreads();

    float largest = __int_as_float(0xff800000); // -infinity
    for (int key = item; key < keys; key += HEAD_DIM) {
        float score = 0.0f;
        for (int i = 0; i < HEAD_DIM; ++i)
            score += query[i] * k[key * HEAD_DIM + i];
        score *= rsqrtf((float)HEAD_DIM);
        scores[key] = score;
        largest = fmaxf(largest, score);
    }
    largest = block_max(scratch, largest);

    float sum = 0.0f;
    for (int key = item; key < keys; key += HEAD_DIM) {
        scores[key] = expf(scores[key] - largest);
        sum += scores[key];
    }
    sum = block_sum(scratch, sum); // the barriers of block_sum() also make the scores of all threads visible

    float value = 0.0f;
    for (int key = 0; key < keys; ++key)
        value += scores[key] * v[key * HEAD_DIM + item];
    y[(row * HEADS + head) * HEAD_DIM + item] = keys > 0 ? value / sum : 0.0f;
}
