#pragma once

namespace warmgraph::backends::test {

inline constexpr const char* k_opencl_program = R"(
kernel void iota(global int* x, int n) { int i = get_global_id(0); if (i < n) x[i] = i; }
kernel void add_scalar(global int* x, int amount, int n) { int i = get_global_id(0); if (i < n) x[i] += amount; }
kernel void scale(global int* x, int factor, int n) { int i = get_global_id(0); if (i < n) x[i] *= factor; }
kernel void copy(global int* to, global const int* from, int n) { int i = get_global_id(0); if (i < n) to[i] = from[i]; }
kernel void add(global int* out, global const int* a, global const int* b, int n)
{
    int i = get_global_id(0);
    if (i < n) out[i] = a[i] + b[i];
}
kernel void sum(global int* out, global const int* x, local int* scratch, int n)
{
    int me = get_local_id(0), all = get_local_size(0), total = 0;
    for (int i = me; i < n; i += all) total += x[i];
    scratch[me] = total;
    barrier(CLK_LOCAL_MEM_FENCE);
    if (me != 0) return;
    for (int i = 1; i < all; ++i) total += scratch[i];
    out[0] = total;
}
)";

} // namespace warmgraph::backends::test
