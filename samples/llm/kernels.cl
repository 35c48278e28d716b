// Kernels of a small Llama-style transformer, f32, OpenCL C 1.2.
//
// Sizes come as build options: DIM, HEADS, KV_HEADS, HEAD_DIM, HIDDEN, VOCAB, MAX_SEQ, NORM_EPS, ROPE_THETA, and the
// geometry that config.hpp describes: LANES and ROWS, which are tuned, and NORM_ITEMS. All matrices are row-major, a weight is [out][in] as
// PyTorch stores it.
//
// Two programs are made of this file: with -D PROMPT the prompt's kernels, with -D DECODE the kernels for decode. So
// each function loads a binary with its own kernels only. All of them have run when the binary is taken: PoCL compiles
// a kernel for its work-group size when it first runs, and packs only compiled kernels.
//
// No grid depends on the position or on the length of the prompt: a recorded graph keeps its grids, and gets both as
// plain arguments. Kernels mask what lies outside.

#define KV_DIM (KV_HEADS * HEAD_DIM)
#define GROUP (HEADS / KV_HEADS) /* query heads that share one key/value head */

// The cache of one layer: keys, then values, each [KV_HEADS][MAX_SEQ][HEAD_DIM].
#define KV_AT(head, position) (((head) * MAX_SEQ + (position)) * HEAD_DIM)
#define KV_VALUES (KV_HEADS * MAX_SEQ * HEAD_DIM)

// --- rows of the residual stream -----------------------------------------------------------------------------------

// y[row][DIM] = table[tokens[row]][DIM]. Groups: one for each row, DIM items. An id outside the vocabulary reads the
// nearest row rather than foreign memory.
__kernel void embed(__global const float *restrict table, __global const int *restrict tokens, __global float *restrict y)
{
    const int row = get_group_id(0);
    const int i = get_local_id(0);
    y[row * DIM + i] = table[clamp(tokens[row], 0, VOCAB - 1) * DIM + i];
}

// y[row] = x[row] / sqrt(mean(x[row]^2) + eps) * weight, rows of DIM. Groups: one for each row, NORM_ITEMS items.
__kernel __attribute__((reqd_work_group_size(NORM_ITEMS, 1, 1)))
void rmsnorm(__global const float *restrict x, __global const float *restrict weight, __global float *restrict y)
{
    __local float sums[NORM_ITEMS];
    const int row = get_group_id(0) * DIM;
    const int item = get_local_id(0);
    float sum = 0.0f;
    for (int i = item; i < DIM; i += NORM_ITEMS)
        sum += x[row + i] * x[row + i];
    sums[item] = sum;
    barrier(CLK_LOCAL_MEM_FENCE);
    for (int step = NORM_ITEMS / 2; step > 0; step /= 2) {
        if (item < step)
            sums[item] += sums[item + step];
        barrier(CLK_LOCAL_MEM_FENCE);
    }
    const float scale = 1.0f / sqrt(sums[0] / DIM + NORM_EPS);
    for (int i = item; i < DIM; i += NORM_ITEMS)
        y[row + i] = x[row + i] * scale * weight[i];
}

#ifdef PROMPT

// x[i] += y[i]. Groups cover rows * DIM.
__kernel void add(__global float *restrict x, __global const float *restrict y)
{
    const int i = get_global_id(0);
    x[i] += y[i];
}

// y[DIM] = x[length - 1], the last real row of `rows`. One group of DIM items.
__kernel void take_last_row(__global const float *restrict x, __global float *restrict y, int length, int rows)
{
    const int i = get_local_id(0);
    y[i] = x[(clamp(length, 1, rows) - 1) * DIM + i];
}

#endif // PROMPT

// --- matrix times vector (decode), matrix times matrix (prompt) ------------------------------------------------------

// Part of w[row] . x that lane `lane` of LANES adds up. Neighbouring lanes read neighbouring float4s. `in` is a multiple
// of 4 * LANES.
float lane_dot(__global const float *restrict w, __global const float *restrict x, int row, int in, int lane)
{
    float4 sum = (float4)(0.0f);
    for (int i = lane; i < in / 4; i += LANES)
        sum += vload4(row * (in / 4) + i, w) * vload4(i, x);
    return sum.x + sum.y + sum.z + sum.w;
}

// The sum over the lanes of this item's row. Items of a group: (LANES, ROWS).
float sum_lanes(__local float *partial, float mine)
{
    const int lane = get_local_id(0);
    __local float *row = partial + get_local_id(1) * LANES;
    row[lane] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f;
    for (int i = 0; i < LANES; ++i)
        sum += row[i];
    return sum;
}

// y[out] = w[out][in] x[in]. Groups: out / ROWS of (LANES, ROWS) items.
__kernel __attribute__((reqd_work_group_size(LANES, ROWS, 1)))
void matvec(__global const float *restrict w, __global const float *restrict x, __global float *restrict y, int in)
{
    __local float partial[LANES * ROWS];
    const int row = get_global_id(1);
    const float sum = sum_lanes(partial, lane_dot(w, x, row, in, get_local_id(0)));
    if (get_local_id(0) == 0)
        y[row] = sum;
}

// silu(g) * u, the activation of SwiGLU.
float gated(float g, float u) { return g / (1.0f + exp(-g)) * u; }

#ifdef DECODE

// y[out] += w[out][in] x[in]: a projection back into the residual stream. Geometry as matvec.
__kernel __attribute__((reqd_work_group_size(LANES, ROWS, 1)))
void matvec_add(__global const float *restrict w, __global const float *restrict x, __global float *restrict y, int in)
{
    __local float partial[LANES * ROWS];
    const int row = get_global_id(1);
    const float sum = sum_lanes(partial, lane_dot(w, x, row, in, get_local_id(0)));
    if (get_local_id(0) == 0)
        y[row] += sum;
}

// y[HIDDEN] = silu(gate x) * (up x), both [HIDDEN][DIM], in one pass over x. Groups: HIDDEN / ROWS of (LANES, ROWS).
__kernel __attribute__((reqd_work_group_size(LANES, ROWS, 1)))
void matvec_swiglu(__global const float *restrict gate, __global const float *restrict up, __global const float *restrict x,
                   __global float *restrict y)
{
    __local float partial_gate[LANES * ROWS];
    __local float partial_up[LANES * ROWS];
    const int row = get_global_id(1);
    const int lane = get_local_id(0);
    const float g = sum_lanes(partial_gate, lane_dot(gate, x, row, DIM, lane));
    const float u = sum_lanes(partial_up, lane_dot(up, x, row, DIM, lane));
    if (lane == 0)
        y[row] = gated(g, u);
}

#endif // DECODE

#ifdef PROMPT

// y[rows][out] = x[rows][in] w[out][in]^T. A group makes a tile of LANES rows by ROWS columns of y. The lanes split the
// dot products as matvec's lanes do, and each float4 of w that a lane reads serves LANES rows, from a register.
// Groups: (out / ROWS, rows / LANES) of (LANES, ROWS) items; rows is a multiple of LANES, out of ROWS.
__kernel __attribute__((reqd_work_group_size(LANES, ROWS, 1)))
void matmul(__global const float *restrict w, __global const float *restrict x, __global float *restrict y, int in, int out)
{
    __local float partial[LANES][ROWS][LANES]; // [row of the tile][column of the tile][lane]
    const int lane = get_local_id(0);
    const int line = get_local_id(1);
    const int column = get_group_id(0) * ROWS + line;
    const int first_row = get_group_id(1) * LANES;
    float4 sums[LANES];
    for (int row = 0; row < LANES; ++row)
        sums[row] = (float4)(0.0f);
    for (int i = lane; i < in / 4; i += LANES) {
        const float4 weight = vload4(column * (in / 4) + i, w);
        for (int row = 0; row < LANES; ++row)
            sums[row] += weight * vload4((first_row + row) * (in / 4) + i, x);
    }
    for (int row = 0; row < LANES; ++row)
        partial[row][line][lane] = sums[row].x + sums[row].y + sums[row].z + sums[row].w;
    barrier(CLK_LOCAL_MEM_FENCE);
    float sum = 0.0f; // each lane finishes one row of the tile
    for (int i = 0; i < LANES; ++i)
        sum += partial[lane][line][i];
    y[(first_row + lane) * out + column] = sum;
}

// gate[i] = silu(gate[i]) * up[i]. Groups cover rows * HIDDEN.
__kernel void swiglu(__global float *restrict gate, __global const float *restrict up)
{
    const int i = get_global_id(0);
    gate[i] = gated(gate[i], up[i]);
}

#endif // PROMPT

// --- attention -------------------------------------------------------------------------------------------------------

// The pair (2 * pair, 2 * pair + 1) of one head, turned by position * theta^(-2 pair / HEAD_DIM).
float2 rotated(float2 value, int pair, int position)
{
    const float angle = position * pow(ROPE_THETA, -2.0f * pair / HEAD_DIM);
    const float c = cos(angle);
    const float s = sin(angle);
    return (float2)(value.x * c - value.y * s, value.x * s + value.y * c);
}

// Rotary embedding of the queries in place: q[rows][HEADS][HEAD_DIM], row r is at position first + r.
// Groups: (rows, HEADS) of HEAD_DIM / 2 items.
__kernel void rope(__global float *restrict q, int first)
{
    const int row = get_group_id(0);
    const int pair = get_local_id(0);
    const int at = (row * HEADS + get_group_id(1)) * (HEAD_DIM / 2) + pair;
    vstore2(rotated(vload2(at, q), pair, first + row), at, q);
}

// Writes rows below `length` of k (rotated) and v, both [rows][KV_HEADS][HEAD_DIM], into one layer's cache at positions
// first + row. Groups: (rows, KV_HEADS) of HEAD_DIM / 2 items.
__kernel void store_kv(__global const float *restrict k, __global const float *restrict v, __global float *restrict cache,
                       int first, int length)
{
    const int row = get_group_id(0);
    const int head = get_group_id(1);
    const int pair = get_local_id(0);
    const int position = first + row;
    if (row >= length || position >= MAX_SEQ)
        return;
    const int from = (row * KV_HEADS + head) * (HEAD_DIM / 2) + pair;
    const int to = KV_AT(head, position) / 2 + pair;
    vstore2(rotated(vload2(from, k), pair, position), to, cache);
    vstore2(vload2(from, v), to, cache + KV_VALUES);
}

// The largest (or the sum) of one value of each item; all items get it. `scratch` holds HEAD_DIM floats.
float group_max(__local float *scratch, float mine)
{
    const int item = get_local_id(0);
    scratch[item] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    float result = scratch[0];
    for (int i = 1; i < HEAD_DIM; ++i)
        result = fmax(result, scratch[i]);
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

float group_sum(__local float *scratch, float mine)
{
    const int item = get_local_id(0);
    scratch[item] = mine;
    barrier(CLK_LOCAL_MEM_FENCE);
    float result = 0.0f;
    for (int i = 0; i < HEAD_DIM; ++i)
        result += scratch[i];
    barrier(CLK_LOCAL_MEM_FENCE);
    return result;
}

// Causal attention over one layer's cache: y[rows][HEADS][HEAD_DIM] = softmax(q k^T / sqrt(HEAD_DIM)) v. Row r is at
// position first + r and sees the positions 0 .. first + r; rows from `length` on are padding and become zero.
// Groups: (rows, HEADS) of HEAD_DIM items; an item scores every HEAD_DIM-th key, then owns one column of the values.
__kernel __attribute__((reqd_work_group_size(HEAD_DIM, 1, 1)))
void attention(__global const float *restrict q, __global const float *restrict cache, __global float *restrict y, int first,
               int length)
{
    __local float query[HEAD_DIM];
    __local float scores[MAX_SEQ];
    __local float scratch[HEAD_DIM];
    const int row = get_group_id(0);
    const int head = get_group_id(1);
    const int item = get_local_id(0);
    const int keys = row < length ? min(first + row + 1, MAX_SEQ) : 0;
    __global const float *restrict k = cache + KV_AT(head / GROUP, 0);
    __global const float *restrict v = k + KV_VALUES;

    query[item] = q[(row * HEADS + head) * HEAD_DIM + item];
    barrier(CLK_LOCAL_MEM_FENCE);

    float largest = -INFINITY;
    for (int key = item; key < keys; key += HEAD_DIM) {
        float score = 0.0f;
        for (int i = 0; i < HEAD_DIM; ++i)
            score += query[i] * k[key * HEAD_DIM + i];
        score *= rsqrt((float)HEAD_DIM);
        scores[key] = score;
        largest = fmax(largest, score);
    }
    largest = group_max(scratch, largest);

    float sum = 0.0f;
    for (int key = item; key < keys; key += HEAD_DIM) {
        scores[key] = exp(scores[key] - largest);
        sum += scores[key];
    }
    sum = group_sum(scratch, sum); // the barriers of group_sum() also make the scores of all items visible

    float value = 0.0f;
    for (int key = 0; key < keys; ++key)
        value += scores[key] * v[key * HEAD_DIM + item];
    y[(row * HEADS + head) * HEAD_DIM + item] = keys > 0 ? value / sum : 0.0f;
}
