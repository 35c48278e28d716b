// Promises for a scalar that device code itself compares. tests/capture/promises_test.cpp has the promises for any
// device.
#include <limits>

#include "promise_fixture.hpp"

namespace warmgraph::test::scalars_test {
namespace {

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void scale_or_add(const float* x, float beta, float* y)
{
    int i = INDEX;
    y[i] = beta == 0 ? 2 * x[i] : 2 * x[i] + beta * y[i];
})";

class PromisedScalars : public GpuPromise {};

TEST_F(PromisedScalars, AFactorThatTheKernelComparesIsReplayedAtZeroToo)
{
    const Program program = device.program("scalars", k_source);
    expect_recorded([&](Cache& cache, CallResults& seen) {
        const Buffer x = device.upload<float>(std::vector<float>(k_count, 3));
        Buffer y = device.upload<float>(std::vector<float>(k_count, 1));
        Spec declared;
        declared.inputs = {input("x", f32, {k_count})};
        declared.states = {state("y", y)};
        declared.scalars = {scalar("beta", f32, -1, 3)};
        declared.code = {program};
        Function f = cache.wrap("kernel", device, declared, [&](Recorder& r) {
            r.stream().launch(program, "scale_or_add", k_launch, r["x"], r.scalar<float>("beta"), r["y"]);
        });
        for (const float beta : {0.5F, 2.0F, 0.0F, -1.0F, 0.0F}) {
            // If y is NaN, then 0 * y is NaN, too. So the test would notice a read of y.
            if (beta == 0) y.write<float>(std::vector<float>(k_count, std::numeric_limits<float>::quiet_NaN()));
            call(seen, f, {{"x", x}, {"beta", beta}}, {&y});
        }
    });
}

} // namespace
} // namespace warmgraph::test::scalars_test
