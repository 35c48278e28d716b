// The smallest use of warmgraph: y = factor * x. Run it twice: the second process compiles nothing.
#include <cstdio>
#include <span>
#include <string>
#include <vector>

#include <warmgraph/warmgraph.hpp>

namespace wg = warmgraph;
constexpr const char* k_source = R"cl(
__kernel void scale(__global const float* x, __global float* y, float factor)
{
    y[get_global_id(0)] = factor * x[get_global_id(0)];
}
)cl";

int main()
try {
    const wg::Device device{"opencl"};
    wg::Cache cache{{.model = "hello"}}; // the cache folder is $WARMGRAPH_CACHE_DIR, else .warmgraph_cache
    const wg::Program program = device.program("hello", k_source);

    wg::Function scale = cache.wrap("scale", device,
                                    {.inputs = {wg::input("x", wg::f32, {64})},
                                     .outputs = {wg::output("y", wg::f32, {64})},
                                     .scalars = {wg::scalar("factor", wg::f32)},
                                     .code = {program}},
                                    [&](wg::Recorder& r) {
                                        r.stream().launch(program, "scale", {{1, 1, 1}, {64, 1, 1}}, r["x"], r["y"],
                                                          r.scalar<float>("factor"));
                                    });

    const std::vector<float> sevens(64, 7.0F);
    const wg::Buffer x = device.upload(std::span{sevens}), y = device.allocate(64 * sizeof(float));
    const wg::Outcome outcome = scale({{"x", x}, {"y", y}, {"factor", 6.0F}});
    device.synchronize();
    std::printf("7 * 6 = %g, %s\n%s\n", y.read<float>()[0], std::string(wg::to_string(outcome)).c_str(),
                cache.summary().c_str());
} catch (const std::exception& error) {
    std::fprintf(stderr, "warmgraph_hello: %s\n", error.what());
    return 1;
}
