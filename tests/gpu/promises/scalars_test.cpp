// Scalars with few values of another way, and tensors whose distance chooses one.
#include <limits>

#include "promise_fixture.hpp"

namespace warmgraph::test::scalars_test {
namespace {

using testing::HasSubstr;

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void add(const int* x, int amount, int* y) { int i = INDEX; y[i] = x[i] + amount; }
extern "C" __global__ void flush(int* y, int* total) { int i = INDEX; total[i] += y[i]; }
extern "C" __global__ void add_here(int* y) { y[INDEX] += 1; }
extern "C" __global__ void scale(const float* x, float* y) { int i = INDEX; y[i] = 2 * x[i]; }
extern "C" __global__ void scale_add(const float* x, float beta, float* y) { int i = INDEX; y[i] = 2 * x[i] + beta * y[i]; }
extern "C" __global__ void scale_or_add(const float* x, float beta, float* y)
{
    int i = INDEX;
    y[i] = beta == 0 ? 2 * x[i] : 2 * x[i] + beta * y[i];
})";

class PromisedScalars : public GpuPromise {
protected:
    [[nodiscard]] Spec axpby() const
    {
        Spec declared;
        declared.inputs = {input("x", f32, {k_count})};
        declared.scalars = {scalar("beta", f32, -1, 3)};
        declared.code = {program};
        return declared;
    }
    /// Called at 0 where y holds no number.
    void call_with_betas(Seen& seen, Function& f, const Buffer& x, Buffer& y)
    {
        for (const float beta : {0.5F, 2.0F, 0.0F, -1.0F, 0.0F}) {
            if (beta == 0) y.write<float>(std::vector<float>(k_count, std::numeric_limits<float>::quiet_NaN()));
            call(seen, f, {{"x", x}, {"beta", beta}}, {&y});
        }
    }

    Program program = device.program("scalars", k_source);
};

TEST_F(PromisedScalars, AConditionThatOnlySomeValuesMeetIsNoConstant)
{
    for (const bool is_large : {false, true})
        expect_refused(
            [this, is_large](Cache& cache, Seen& seen) {
                const Buffer x = words(5), y = filled(-1), total = filled(0);
                Spec declared = spec(program);
                declared.states = {state("total", total)};
                declared.scalars = {scalar("position", i32, 0, is_large ? 999'900 : 2000)};
                Function f = cache.wrap(is_large ? "flush_large" : "flush", device, declared, [&](Recorder& r) {
                    const auto position = r.scalar<std::int32_t>("position");
                    r.stream().launch(program, "add", k_launch, r["x"], position, r["y"]);
                    if ((position + 1) % 16 == 0) r.stream().launch(program, "flush", k_launch, r["y"], r["total"]);
                });
                for (const int position : {5, 15, 16, 31})
                    call(seen, f, {{"x", x}, {"y", y}, {"position", position}}, {&y, &total});
            },
            HasSubstr("position"));
}

TEST_F(PromisedScalars, AFactorThatIsZeroChoosesAnotherKernelAndIsRefused)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = device.upload<float>(std::vector<float>(k_count, 3));
            Buffer y = device.upload<float>(std::vector<float>(k_count, 1));
            Spec declared = axpby();
            declared.states = {state("y", y)};
            Function f = cache.wrap("blas", device, declared, [&](Recorder& r) {
                const float beta = r.scalar<float>("beta");
                if (beta == 0)
                    r.stream().launch(program, "scale", k_launch, r["x"], r["y"]);
                else
                    r.stream().launch(program, "scale_add", k_launch, r["x"], beta, r["y"]);
            });
            call_with_betas(seen, f, x, y);
        },
        HasSubstr("beta"));
}

TEST_F(PromisedScalars, AFactorThatTheKernelComparesIsReplayedAtZeroToo)
{
    expect_recorded([this](Cache& cache, Seen& seen) {
        const Buffer x = device.upload<float>(std::vector<float>(k_count, 3));
        Buffer y = device.upload<float>(std::vector<float>(k_count, 1));
        Spec declared = axpby();
        declared.states = {state("y", y)};
        Function f = cache.wrap("kernel", device, declared, [&](Recorder& r) {
            r.stream().launch(program, "scale_or_add", k_launch, r["x"], r.scalar<float>("beta"), r["y"]);
        });
        call_with_betas(seen, f, x, y);
    });
}

/// In place where it may be, else through scratch: a tensor that lies a little behind the other would be read when it is written.
TEST_F(PromisedScalars, WhatWasRecordedInPlaceIsNotReplayedWhereTensorsOverlapOtherwise)
{
    constexpr std::uint64_t k_behind = 256; // bytes
    const Seen later = expect_native(
        [this](Cache& cache, Seen& seen) {
            const Buffer memory = words(0, k_count + k_behind / 4);
            const Address start = memory.memory().address;
            Function f = cache.wrap("in_place", device, spec(program), [&](Recorder& r) {
                const Address x = r["x"], y = r["y"];
                if (x == y) return r.stream().launch(program, "add_here", k_launch, y);
                const Address scratch = r.alloc("scratch", k_bytes);
                r.stream().copy(scratch, x, k_bytes);
                r.stream().launch(program, "add", k_launch, scratch, std::int32_t{1}, y);
            });
            for (const std::uint64_t behind :
                 {std::uint64_t{0}, std::uint64_t{0}, k_behind, k_behind, std::uint64_t{0}})
                call(seen, f, {{"x", MemoryRef{start, k_bytes}}, {"y", MemoryRef{start + behind, k_bytes}}}, {&memory});
        },
        testing::ElementsAre("recorded", "replayed", "recorded", "replayed", "replayed"));
    EXPECT_THAT(later.outcomes, testing::Each("replayed"));
}

} // namespace
} // namespace warmgraph::test::scalars_test
