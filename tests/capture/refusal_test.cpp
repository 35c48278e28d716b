// Functions that cannot be recorded are refused by name. The caller still gets the function's own result.
#include "facade_fixture.hpp"

namespace warmgraph::test::refusal_test {
namespace {

class Refusals : public FacadeTest {
protected:
    /// Wraps `body` and calls it once. Expects a refusal whose reason contains `because`, and that later calls do not
    /// try again.
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
        EXPECT_THAT(f.report().reason, HasSubstr(because));
        const int runs_of_the_first_call = runs;
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
        EXPECT_EQ(runs, runs_of_the_first_call + 1) << "a refused signature runs as it is, once a call";
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).refused, 1U);
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
            device.synchronize(); // the call runs in the device's default stream
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
                   "kernel add_one (node 0) takes an address at parameter 0");
}

/// The first run does work that later runs do not do. A process that only replays would never do this work.
TEST_F(Refusals, WhatOnlyTheFirstRunDoesIsRefused)
{
    const Buffer table = device.upload<float>(std::vector<float>(k_count, 0.0F));
    Spec spec = vector_spec();
    spec.states = {state("table", table)};
    bool done = false;
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
        if (!std::exchange(done, true)) r.stream().copy(r["table"], r["x"], k_count * 4);
        r.stream().launch(program, "add", k_launch, r["x"], r["table"], r["y"]);
    });
    const Buffer x = floats(3), y = device.allocate(k_count * 4);
    for (int call = 0; call < 4; ++call) {
        EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::refused);
        EXPECT_EQ(read(y)[0], 6.0F) << "call " << call;
        EXPECT_EQ(read(table), read(x)) << "it was initialised for good";
    }
    EXPECT_THAT(f.report().reason, HasSubstr("a run of its capture gives other results than the call itself"));
    EXPECT_TRUE(entries().empty());
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
        "its second run enqueued something else");
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

/// The function's own runs give a state different values, and for states no difference is tolerated.
TEST_F(Refusals, NondeterministicDataWithoutToleranceIsRefused)
{
    const Buffer sum = floats(0);
    Spec spec = vector_spec();
    spec.states = {state("s", sum)};
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
        const auto scratch = r.alloc("counted up", k_count * 4);
        r.stream().copy(r["s"], scratch, k_count * 4);
        r.stream().launch(program, "add_one", k_launch, scratch, scratch);
        work(r);
    });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("'s'"));
    EXPECT_EQ(read(m_y), read(floats(1)));
}

TEST_F(Refusals, AConstantThatChangesFromCallToCallIsRefusedByNodeAndParameter)
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
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason,
                HasSubstr("its second run enqueued something else (kernel put (node 0), parameter 2"));
    EXPECT_EQ(read(sum)[0], 1.0F) << "the call's own run, and no other";
}

TEST_F(Refusals, ReadingWhatAnEarlierRunLeftInScratchIsRefused)
{
    expect_refused(
        [this](Recorder& r) {
            const auto scratch = r.alloc("counted up", k_count * 4);
            r.stream().launch(program, "add_one", k_launch, scratch, r["y"]);
            r.stream().copy(scratch, r["y"], k_count * 4);
        },
        "data that an earlier run left there");
}

/// The workspace has counters, which each run resets to zero.
TEST_F(Refusals, ScratchThatIsZeroAtFirstAndAfterEachRunMayBeRead)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, vector_spec(), [this](Recorder& r) {
        r.stream().launch(program, "add", k_launch, r["x"], r.alloc("zeros", k_count * 4), r["y"]);
    });
    const Buffer x = floats(3), y = device.allocate(k_count * 4);
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::recorded) << f.report().reason;
    EXPECT_EQ(read(y), read(x));
    EXPECT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
    EXPECT_EQ(read(y), read(x));
}

TEST_F(Refusals, WritingPastADeclaredOutputIsRefused)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    spec.outputs = {output("y", f32, {k_count / 2})}; // the kernel writes k_count
    Function f = cache.wrap("f", device, spec, [this](Recorder& r) { work(r); });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("outside 'y'"));
    EXPECT_EQ(read(m_y), read(floats(1))) << "as it is, it still does what it did";
}

TEST_F(Refusals, WhatTheFunctionThrowsReachesTheCallerAndNothingIsRecorded)
{
    int runs = 0;
    bool throws = true;
    Cache cache{options()};
    Function f = cache.wrap("f", device, vector_spec(), [&](Recorder& r) {
        ++runs;
        work(r);
        if (throws) throw std::runtime_error("out of patience");
    });
    for (int call = 1; call <= 2; ++call) {
        EXPECT_THROW(f({{"x", m_x}, {"y", m_y}}), std::runtime_error);
        EXPECT_EQ(runs, call) << "once a call, as without a cache";
        EXPECT_TRUE(entries().empty());
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).refused, 0U);
    }
    throws = false;
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::recorded) << f.report().reason;
    EXPECT_EQ(read(m_y), read(floats(1)));
}

TEST_F(Refusals, AnExceptionInTheCaptureAloneRunsTheFunctionAsItIs)
{
    int calls = 0;
    expect_refused(
        [&](Recorder& r) {
            work(r);
            if (++calls == 2) throw std::runtime_error("only once"); // run 1 is the answer, run 2 the first capture
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
    ASSERT_TRUE(failed_with(thrown, ErrorCode::compile_failed));
    EXPECT_THAT(thrown->what(), AllOf(HasSubstr("broken"), HasSubstr("undeclared_name")));
}

TEST_F(Refusals, ACallInsideACallIsAnError)
{
    Cache cache{options()};
    Function inner = add_one(cache, "inner");
    Function outer = cache.wrap("outer", device, vector_spec(), [&](Recorder&) { inner({{"x", m_x}, {"y", m_y}}); });
    EXPECT_THAT(message_of(thrown_by([&] { outer({{"x", m_x}, {"y", m_y}}); })),
                HasSubstr("'inner' is called inside 'outer'"));
}

TEST_F(Refusals, AFunctionIsNotAskedNorBoundInsideItself)
{
    CacheOptions uncached = options();
    uncached.policy = Policy::off;
    Cache cache{uncached};
    Function* self = nullptr;
    Function asks = cache.wrap("asks", device, vector_spec(), [&](Recorder&) { (void)self->report(); });
    self = &asks;
    EXPECT_THAT(message_of(thrown_by([&] { asks({{"x", m_x}, {"y", m_y}}); })),
                HasSubstr("'asks' is asked for its report inside its own callable"));
    Function binds = cache.wrap("binds", device, vector_spec(), [&](Recorder&) { self->bind("kv", m_x); });
    self = &binds;
    EXPECT_THAT(message_of(thrown_by([&] { binds({{"x", m_x}, {"y", m_y}}); })),
                HasSubstr("'binds' is bound inside its own callable"));
}

} // namespace
} // namespace warmgraph::test::refusal_test
