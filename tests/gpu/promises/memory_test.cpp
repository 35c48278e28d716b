// Memory that nobody declared, state that starts once, and state of the host.
#include <array>

#include "promise_fixture.hpp"

namespace warmgraph::test::memory_test {
namespace {

using testing::AnyOf;
using testing::HasSubstr;

constexpr const char* k_source = R"(
#define INDEX (static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x))
extern "C" __global__ void advance(int* counter, const int* x, int* y) { int i = INDEX; y[i] = x[i] + counter[i]; counter[i] += 1; }
extern "C" __global__ void add(const int* a, const int* b, int* y) { int i = INDEX; y[i] = a[i] + b[i]; }
extern "C" __global__ void fill(int* y, int value) { y[INDEX] = value + INDEX; }
extern "C" __global__ void copy(int* to, const int* from) { to[INDEX] = from[INDEX]; }
extern "C" __global__ void mix(const int* a, const int* b, const int* c, int* y) { int i = INDEX; y[i] = a[i] + 2 * b[i] + 4 * c[i]; }
extern "C" __global__ void draw(unsigned seed, unsigned long long offset, int* y)
{
    unsigned long long z = seed * 0x9E3779B97F4A7C15ULL + offset + INDEX;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
    y[INDEX] = static_cast<int>(z >> 32);
})";

class PromisedMemory : public GpuPromise {
protected:
    Program program = device.program("memory", k_source);
};

TEST_F(PromisedMemory, WorkThatAdvancesUndeclaredMemoryAdvancesItOncePerCall)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1), counter = filled(0);
            Function f = cache.wrap("advance", device, spec(program), [&](Recorder& r) {
                r.stream().launch(program, "advance", k_launch, counter, r["x"], r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
        },
        HasSubstr("advance"));
}

TEST_F(PromisedMemory, ADeclaredStateAdvancesOncePerCall)
{
    expect_recorded([this](Cache& cache, Seen& seen) {
        const Buffer x = words(5), y = filled(-1), counter = filled(0);
        Spec declared = spec(program);
        declared.states = {state("counter", counter)};
        Function f = cache.wrap("advance_declared", device, declared, [&](Recorder& r) {
            r.stream().launch(program, "advance", k_launch, r["counter"], r["x"], r["y"]);
        });
        for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &counter});
    });
}

TEST_F(PromisedMemory, AStateThatTheFirstCallInitialisesStaysInitialised)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1), table = filled(0);
            Spec declared = spec(program);
            declared.states = {state("table", table)};
            bool is_done = false;
            Function f = cache.wrap("initialise", device, declared, [&](Recorder& r) {
                if (!is_done) r.stream().launch(program, "fill", k_launch, r["table"], std::int32_t{100});
                is_done = true;
                r.stream().launch(program, "add", k_launch, r["x"], r["table"], r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &table});
        },
        HasSubstr("initialises or advances something that no capture holds"));
}

/// The captures call the callable again, which counts: only this call is the native one.
TEST_F(PromisedMemory, ARingThatIsKeptOnTheHostGivesItsFirstCallTheNativeResult)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer x = words(5), y = filled(-1);
            const std::array<Buffer, 3> ring{filled(1), filled(10), filled(100)};
            Spec declared = spec(program);
            declared.states = {state("first", ring[0]), state("second", ring[1]), state("third", ring[2])};
            constexpr std::array<const char*, 3> k_names{"first", "second", "third"};
            std::size_t next = 0;
            Function f = cache.wrap("ring", device, declared, [&](Recorder& r) {
                r.stream().launch(program, "copy", k_launch, r[k_names[next]], r["x"]);
                next = (next + 1) % 3;
                r.stream().launch(program, "mix", k_launch, r["first"], r["second"], r["third"], r["y"]);
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"x", x}, {"y", y}}, {&y, &ring[0], &ring[1], &ring[2]});
        },
        testing::Not(testing::IsEmpty()), Compared::first_call);
}

TEST_F(PromisedMemory, AnOffsetThatIsKeptOnTheHostGivesItsFirstCallTheNativeResult)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer y = filled(-1);
            Spec declared = spec(program);
            declared.inputs.clear();
            std::uint64_t offset = 0;
            Function f = cache.wrap("draw", device, declared, [&](Recorder& r) {
                r.stream().launch(program, "draw", k_launch, std::uint32_t{42}, offset, r["y"]);
                offset += k_count;
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"y", y}}, {&y});
        },
        HasSubstr("kernel draw"), Compared::first_call);
}

/// Twelve captures would bring it back to where it was.
TEST_F(PromisedMemory, AnOffsetOfAShortPeriodIsNoConstant)
{
    expect_refused(
        [this](Cache& cache, Seen& seen) {
            const Buffer y = filled(-1);
            Spec declared = spec(program);
            declared.inputs.clear();
            std::uint64_t phase = 0;
            Function f = cache.wrap("phase", device, declared, [&](Recorder& r) {
                r.stream().launch(program, "draw", k_launch, std::uint32_t{42}, phase, r["y"]);
                phase = (phase + 1) % 2;
            });
            for (int i = 0; i < 4; ++i) call(seen, f, {{"y", y}}, {&y});
        },
        testing::Not(testing::IsEmpty()), Compared::first_call);
}

} // namespace
} // namespace warmgraph::test::memory_test
