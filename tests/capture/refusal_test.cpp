// What cannot be recorded is refused by name, and the caller still gets the function's own result.
#include "facade_fixture.hpp"

namespace warmgraph::test {
namespace {

class Refusals : public FacadeTest {
protected:
    /// Wraps, calls once, expects a refusal whose reason has `because`, and that later calls do not try again.
    template <class Body>
    void expect_refused(Body body, const std::string& because)
    {
        int runs = 0;
        Cache cache{options()};
        Function f = cache.wrap("f", device, vector_spec(), [&](Recorder& r) {
            ++runs;
            body(r);
        });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
        EXPECT_EQ(f.report().outcome, Outcome::refused);
        EXPECT_THAT(f.report().reason, testing::HasSubstr(because));
        const int runs_of_the_first_call = runs;
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
        EXPECT_EQ(runs, runs_of_the_first_call + 1) << "a refused signature runs as it is, once a call";
        EXPECT_EQ(cache.statistics().refusals, 1U);
        EXPECT_TRUE(entries().empty());
    }
    void work(Recorder& r) { r.stream().launch(program, "add_one", k_launch, r["x"], r["y"]); }
};

TEST_F(Refusals, SynchronizingIsRefusedByName)
{
    expect_refused(
        [this](Recorder& r) {
            work(r);
            r.stream().synchronize();
        },
        "Stream::synchronize");
}

TEST_F(Refusals, SynchronizingTheDeviceIsRefusedByName)
{
    expect_refused(
        [this](Recorder& r) {
            work(r);
            device.synchronize(); // the call is in the device's own stream
        },
        "Device::synchronize");
}

TEST_F(Refusals, ReadingBackIsRefusedByNameEvenWhenTheExceptionIsSwallowed)
{
    const Buffer probe = floats(0);
    expect_refused(
        [&](Recorder& r) {
            work(r);
            try {
                (void)probe.read<float>();
            } catch (const std::exception&) {
            }
        },
        "Buffer::download");
}

TEST_F(Refusals, AllocatingDeviceMemoryIsRefusedByName)
{
    expect_refused(
        [this](Recorder& r) {
            work(r);
            (void)device.allocate(64);
        },
        "Device::allocate");
}

TEST_F(Refusals, UndeclaredMemoryIsRefusedWithNodeAndParameter)
{
    const Buffer secret = floats(0);
    expect_refused([&](Recorder& r) { r.stream().launch(program, "add_one", k_launch, secret, r["y"]); },
                   "node 0 (kernel 'add_one') takes an address at parameter 0");
}

TEST_F(Refusals, RecordingNothingIsRefused)
{
    expect_refused([](Recorder&) {}, "recorded nothing");
}

TEST_F(Refusals, SomethingElseTheSecondTimeIsRefused)
{
    int calls = 0;
    expect_refused(
        [&](Recorder& r) {
            work(r);
            if (++calls % 2 == 0) work(r);
        },
        "something else the second time");
}

TEST_F(Refusals, AnUnjoinedForkIsRefused)
{
    expect_refused(
        [this](Recorder& r) {
            work(r);
            r.fork().launch(program, "add_one", k_launch, r["x"], r["y"]);
        },
        "join");
}

TEST_F(Refusals, NondeterministicDataWithoutToleranceIsRefused)
{
    const Buffer sum = floats(0);
    Spec spec = vector_spec();
    spec.states = {state("s", sum)};
    int calls = 0;
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
        r.stream().launch(program, "put", {.grid = {1, 1, 1}, .block = {1, 1, 1}}, r["s"], 0,
                          static_cast<float>(++calls));
        work(r);
    });
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, testing::HasSubstr("'s'"));
}

TEST_F(Refusals, ReadingScratchThatWasNotWrittenIsRefused)
{
    expect_refused(
        [this](Recorder& r) {
            r.stream().launch(program, "add_one", k_launch, r.alloc("garbage", k_count * 4), r["y"]);
        },
        "memory it did not write");
}

TEST_F(Refusals, WritingPastADeclaredOutputIsRefused)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    spec.outputs = {output("y", f32, {k_count / 2})}; // the kernel writes k_count
    Function f = cache.wrap("f", device, spec, [this](Recorder& r) { work(r); });
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, testing::HasSubstr("outside 'y'"));
    EXPECT_EQ(read(y), read(floats(1))) << "as it is, it still does what it did";
}

TEST_F(Refusals, AnExceptionWhileRecordingReachesTheCallerAndPublishesNothing)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, vector_spec(), [this](Recorder& r) {
        work(r);
        throw std::runtime_error("out of patience");
    });
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    EXPECT_THROW(f({{"x", x}, {"y", y}}), std::runtime_error);
    EXPECT_EQ(f.report().outcome, Outcome::refused);
    EXPECT_THAT(f.report().reason, testing::HasSubstr("out of patience"));
    EXPECT_TRUE(entries().empty());
    EXPECT_THROW(f({{"x", x}, {"y", y}}), std::runtime_error);
}

TEST_F(Refusals, AnExceptionInTheCaptureAloneRunsTheFunctionAsItIs)
{
    int calls = 0;
    expect_refused(
        [&](Recorder& r) {
            work(r);
            if (++calls == 4) throw std::runtime_error("only once"); // the runs before the capture are three
        },
        "only once");
}

TEST_F(Refusals, SourceThatDoesNotCompileThrowsWithTheCompilersLog)
{
    const Program broken = device.program("broken", "__kernel void f(__global float* y) { y[0] = undeclared_name; }");
    Cache cache{options()};
    Spec spec;
    spec.outputs = {output("y", f32, {1})};
    Function f = cache.wrap("f", device, spec, [&](Recorder& r) { r.stream().launch(broken, "f", {}, r["y"]); });
    const Buffer y = device.allocate(4);
    const auto thrown = thrown_by([&] { f({{"y", y}}); });
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), ErrorCode::compile_failed);
    EXPECT_THAT(thrown->what(), testing::AllOf(testing::HasSubstr("broken"), testing::HasSubstr("undeclared_name")));
}

TEST_F(Refusals, ACallInsideACallIsAnError)
{
    Cache cache{options()};
    Function inner = add_one(cache, "inner");
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    Function outer = cache.wrap("outer", device, vector_spec(), [&](Recorder&) { inner({{"x", x}, {"y", y}}); });
    const auto thrown = thrown_by([&] { outer({{"x", x}, {"y", y}}); });
    ASSERT_TRUE(thrown);
    EXPECT_THAT(thrown->what(), testing::HasSubstr("'inner' is called inside 'outer'"));
}

TEST_F(Refusals, AFunctionIsNotAskedNorBoundInsideItself)
{
    CacheOptions uncached = options();
    uncached.policy = Policy::off;
    Cache cache{uncached};
    Function* self = nullptr;
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    Function asks = cache.wrap("asks", device, vector_spec(), [&](Recorder&) { (void)self->report(); });
    self = &asks;
    const auto asked = thrown_by([&] { asks({{"x", x}, {"y", y}}); });
    ASSERT_TRUE(asked);
    EXPECT_THAT(asked->what(), testing::HasSubstr("'asks' is asked for its report inside its own callable"));
    Function binds = cache.wrap("binds", device, vector_spec(), [&](Recorder&) { self->bind("kv", x); });
    self = &binds;
    const auto bound = thrown_by([&] { binds({{"x", x}, {"y", y}}); });
    ASSERT_TRUE(bound);
    EXPECT_THAT(bound->what(), testing::HasSubstr("'binds' is bound inside its own callable"));
}

} // namespace
} // namespace warmgraph::test
