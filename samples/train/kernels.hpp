// The kernels of the training step, one source for OpenCL C and CUDA C++. Each item sums in a fixed order, so that all
// runs give the same bits.
#pragma once

#include <string>

namespace train {

inline constexpr const char* k_opencl_prefix = R"cl(
#define KERNEL __kernel
#define GLOBAL __global
#define ITEM ((int)get_global_id(0))
#define TANH tanh
#define EXP exp
#define LOG log
)cl";

inline constexpr const char* k_cuda_prefix = R"cu(
#define KERNEL extern "C" __global__
#define GLOBAL
#define ITEM ((int)(blockIdx.x * blockDim.x + threadIdx.x))
#define TANH tanhf
#define EXP expf
#define LOG logf
)cu";

/// INPUTS, HIDDEN and CLASSES are build options. The parameters are in one array: w1 [INPUTS][HIDDEN], b1, w2
/// [HIDDEN][CLASSES], b2; so are their gradients.
inline constexpr const char* k_body = R"(
#define B1 (INPUTS * HIDDEN)
#define W2 (B1 + HIDDEN)
#define B2 (W2 + HIDDEN * CLASSES)

KERNEL void hidden_layer(GLOBAL const float* x, GLOBAL const float* theta, GLOBAL float* h, int rows)
{
    int row = ITEM / HIDDEN, unit = ITEM % HIDDEN;
    if (row >= rows) return;
    float sum = theta[B1 + unit];
    for (int i = 0; i < INPUTS; ++i) sum += x[row * INPUTS + i] * theta[i * HIDDEN + unit];
    h[row * HIDDEN + unit] = TANH(sum);
}

// Cross entropy of the softmax, row by row; the probabilities are what backward needs.
KERNEL void output_layer(GLOBAL const float* h, GLOBAL const float* theta, GLOBAL const int* label, GLOBAL float* p,
                         GLOBAL float* loss, int rows)
{
    int row = ITEM;
    if (row >= rows) return;
    float logits[CLASSES], largest = -1e30f, total = 0.0f;
    for (int c = 0; c < CLASSES; ++c) {
        float sum = theta[B2 + c];
        for (int unit = 0; unit < HIDDEN; ++unit) sum += h[row * HIDDEN + unit] * theta[W2 + unit * CLASSES + c];
        logits[c] = sum;
        if (sum > largest) largest = sum;
    }
    for (int c = 0; c < CLASSES; ++c) total += EXP(logits[c] - largest);
    for (int c = 0; c < CLASSES; ++c) p[row * CLASSES + c] = EXP(logits[c] - largest) / total;
    loss[row] = LOG(total) + largest - logits[label[row]];
}

KERNEL void logit_gradient(GLOBAL const float* p, GLOBAL const int* label, GLOBAL const float* dloss, GLOBAL float* dz2,
                           int rows)
{
    int row = ITEM / CLASSES, c = ITEM % CLASSES;
    if (row >= rows) return;
    dz2[ITEM] = (p[ITEM] - (label[row] == c ? 1.0f : 0.0f)) * dloss[row];
}

KERNEL void hidden_gradient(GLOBAL const float* h, GLOBAL const float* dz2, GLOBAL const float* theta, GLOBAL float* dz1,
                            int rows)
{
    int row = ITEM / HIDDEN, unit = ITEM % HIDDEN;
    if (row >= rows) return;
    float sum = 0.0f;
    for (int c = 0; c < CLASSES; ++c) sum += dz2[row * CLASSES + c] * theta[W2 + unit * CLASSES + c];
    dz1[ITEM] = sum * (1.0f - h[ITEM] * h[ITEM]);
}

// d[i][j] = sum over rows of a[row][i] * b[row][j], and below it the sums of b: the gradients of one layer.
KERNEL void layer_gradient(GLOBAL const float* a, GLOBAL const float* b, GLOBAL float* d, int first, int width, int out,
                           int rows)
{
    int i = ITEM / out, j = ITEM % out;
    if (i > width) return;
    float sum = 0.0f;
    for (int row = 0; row < rows; ++row) sum += (i < width ? a[row * width + i] : 1.0f) * b[row * out + j];
    d[first + ITEM] = sum;
}

KERNEL void momentum(GLOBAL float* theta, GLOBAL float* velocity, GLOBAL const float* gradient, float rate, float keep,
                     int count)
{
    if (ITEM >= count) return;
    velocity[ITEM] = keep * velocity[ITEM] + gradient[ITEM];
    theta[ITEM] -= rate * velocity[ITEM];
}
)";

} // namespace train
