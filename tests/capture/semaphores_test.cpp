// External semaphores through the facade, on the fake driver.
#include <atomic>

#include "semaphores_fixture.hpp"

namespace warmgraph::test::semaphores_test {
namespace {

/// A fixture with its own device.
class OnDevice : public Semaphores {
protected:
    [[nodiscard]] Buffer numbers(int32_t value) const
    {
        return device.upload<int32_t>(std::vector<int32_t>(k_semaphore_count, value));
    }
    [[nodiscard]] std::vector<int32_t> read(const Buffer& buffer) const
    {
        device.synchronize(); // would report a misused semaphore
        return buffer.read<int32_t>();
    }
    [[nodiscard]] static std::vector<int32_t> all(int32_t value)
    {
        return std::vector<int32_t>(k_semaphore_count, value);
    }
    [[nodiscard]] Spec spec(const Channel& channel) const { return spec_of(program, channel); }
    [[nodiscard]] Function wrap(Cache& cache, const Channel& channel) const
    {
        return cache.wrap("f", device, spec(channel), work(program, channel));
    }
    /// Makes one call for `frame`, after the frame was signalled as ready. y and the counter show that the work ran
    /// once.
    void expect_call(Function& f, const Channel& channel, std::uint64_t frame, Outcome outcome)
    {
        fake.signal(channel.ready, frame);
        const auto value = static_cast<int32_t>(frame);
        const Buffer x = numbers(value), y = numbers(-1);
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", frame}}), outcome) << f.report().reason;
        EXPECT_EQ(read(y), all(value + 1));
        EXPECT_EQ(fake.value_of(channel.shown), frame);
    }
    /// Makes two calls, and expects that only the second one records.
    void expect_recorded(Function& f, const Channel& channel, std::uint64_t frame)
    {
        expect_call(f, channel, frame, Outcome::eager);
        EXPECT_THAT(f.report().reason, HasSubstr("recorded by a later call"));
        expect_call(f, channel, frame + 1, Outcome::recorded);
    }
    Device device{"cuda:0"};
    Program program = device.program("small", k_fake_cuda_program);
};

TEST_F(OnDevice, AreMetOncePerCallWhetherItIsRecordedOrReplayed)
{
    {
        const Channel here = channel();
        Cache cache{options()};
        Function f = wrap(cache, here);
        expect_recorded(f, here, 10);
        expect_call(f, here, 12, Outcome::replayed);
        expect_call(f, here, 500'000, Outcome::replayed);
        const std::string shown = cache.readable("f");
        EXPECT_THAT(shown, AllOf(HasSubstr("bitwise (3 runs), without its semaphores"), HasSubstr("ready >= frame"),
                                 HasSubstr("shown = frame")));
    }
    for (const bool verified : {false, true}) { // stands for another process, with other semaphores and other values
        const Channel there = channel(0, 20);
        CacheOptions with = options();
        with.verify_on_load = verified;
        Cache cache{with};
        Function f = wrap(cache, there);
        if (verified) expect_call(f, there, 21, Outcome::eager); // a later call compares the entry with the function
        expect_call(f, there, 22, Outcome::replayed);
        expect_call(f, there, 23, Outcome::replayed);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
    }
    const Channel loaded = channel();
    Cache cache{options()};
    Function f = cache.load("f", device, spec(loaded));
    EXPECT_EQ(cache.preload({.wait = PreloadWait::all}).progress().loaded, 1U);
    expect_call(f, loaded, 7, Outcome::replayed);
}

TEST_F(OnDevice, OneThatIsNotGivenToALoadedFunctionIsNamed)
{
    const Channel here = channel();
    {
        Cache cache{options()};
        Function f = wrap(cache, here);
        expect_recorded(f, here, 10);
    }
    Spec lacking = spec(here);
    lacking.semaphores.erase("shown");
    Cache cache{options()};
    Function f = cache.load("f", device, lacking);
    const Buffer x = numbers(1), y = numbers(-1);
    EXPECT_THAT(message_of(thrown_by([&] { (void)f({{"x", x}, {"y", y}, {"frame", std::uint64_t{11}}}); })),
                AllOf(HasSubstr("external semaphore 'shown'"), HasSubstr("Spec::semaphores")));
    EXPECT_EQ(fake.value_of(here.shown), 11U);
}

TEST_F(OnDevice, AnUndeclaredOneIsRefusedAndTheFunctionRunsAsItIs)
{
    const Channel here = channel(5);
    Spec lacking = spec(here);
    lacking.semaphores.erase("shown");
    Cache cache{options()};
    Function f = cache.wrap("f", device, lacking, work(program, here));
    expect_call(f, here, 5, Outcome::eager);
    expect_call(f, here, 6, Outcome::refused);
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("semaphore signal (node"), HasSubstr("Spec::semaphores")));
}

TEST_F(OnDevice, WhereAnEntryHasThemAndTheSpecNoneTheFunctionRunsAsItIs)
{
    const Channel here = channel();
    {
        Cache cache{options()};
        Function f = wrap(cache, here);
        expect_recorded(f, here, 10);
    }
    Spec forgotten = spec(here);
    forgotten.semaphores.clear();
    Cache cache{options()};
    Function f = cache.wrap("f", device, forgotten, work(program, here));
    expect_call(f, here, 12, Outcome::refused); // refused, because each recording run would wait and signal again
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("external semaphore 'ready'"), HasSubstr("Spec::semaphores")));
    expect_call(f, here, 13, Outcome::refused);
}

TEST_F(OnDevice, AValueOfTheFunctionsOwnCountingIsRefusedAndTheFunctionRunsAsItIs)
{
    const Channel here = channel();
    std::atomic<std::uint64_t> count = 0;
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(here), [&](Recorder& r) {
        r.stream().copy(r["y"], r["x"], k_semaphore_bytes);
        signal(here.shown, ++count, r.stream().native());
    });
    const Buffer x = numbers(3), y = numbers(-1);
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", std::uint64_t{1}}}), Outcome::eager);
    EXPECT_EQ(fake.value_of(here.shown), 1U);
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", std::uint64_t{1}}}), Outcome::refused);
    EXPECT_THAT(f.report().reason,
                AllOf(HasSubstr("its second run enqueued something else"), HasSubstr("semaphore 0 of value")));
    EXPECT_EQ(read(y), all(3));
    EXPECT_EQ(fake.value_of(here.shown), 2U) << "signalled by the two calls' own runs alone";
}

/// The calling thread may signal only later, so a call that waits for its own work would hang.
TEST_F(OnDevice, NoCallWaitsForAnAnswerThatIsNotThereYet)
{
    const Channel here = channel();
    for (const bool verified : {false, true}) {
        CacheOptions with = options();
        with.verify_on_load = verified;
        Cache cache{with};
        Function f = wrap(cache, here);
        const std::uint64_t from = verified ? 20 : 10;
        expect_call(f, here, from, Outcome::eager);
        fake.signal(here.ready, from + 1);
        const Buffer x = numbers(3), y = numbers(-1);
        fake.reset(); // from here on no event is done, as on a device whose stream waits
        fake.fail("cuEventQuery", 1, 0, CUDA_ERROR_NOT_READY);
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", from + 1}}), Outcome::eager);
        EXPECT_EQ(fake.calls_of("cuStreamSynchronize") + fake.calls_of("cuCtxSynchronize"), 0);
        EXPECT_EQ(cache.record_pending(), 0U);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 0U);
        fake.reset();
        expect_call(f, here, from + 2, verified ? Outcome::replayed : Outcome::recorded);
        expect_call(f, here, from + 3, Outcome::replayed);
    }
}

class SemaphoreAdoption : public OnDevice {
protected:
    SemaphoreAdoption()
    {
        device.prepare_recording();
        CUcontext context = nullptr;
        check(fake.entry<decltype(::cuDevicePrimaryCtxRetain)>("cuDevicePrimaryCtxRetain")(&context, 0));
        check(fake.entry<decltype(::cuCtxSetCurrent)>("cuCtxSetCurrent")(context));
    }
    ~SemaphoreAdoption() override
    {
        for (CUgraph graph : graphs) static_cast<void>(fake.entry<decltype(::cuGraphDestroy)>("cuGraphDestroy")(graph));
        static_cast<void>(fake.entry<decltype(::cuCtxSetCurrent)>("cuCtxSetCurrent")(nullptr));
        static_cast<void>(fake.entry<decltype(::cuDevicePrimaryCtxRelease)>("cuDevicePrimaryCtxRelease")(0));
    }
    /// Captures a wait for ready >= frame, the copies x -> pool -> y, and the signal shown = frame + 1.
    [[nodiscard]] NativeCapture captured(const MemoryRef& x, const MemoryRef& pool, const MemoryRef& y,
                                         const Channel& channel, std::uint64_t frame)
    {
        Stream stream = device.stream();
        auto* const native = static_cast<CUstream>(stream.native());
        const auto begin = fake.entry<decltype(::cuStreamBeginCapture)>("cuStreamBeginCapture");
        const auto copy = fake.entry<decltype(::cuMemcpyAsync)>("cuMemcpyAsync");
        CUgraph graph = nullptr;
        check(begin(native, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
        wait(channel.ready, frame, native);
        check(copy(pool.address.flat(), x.address.flat(), k_semaphore_bytes, native));
        check(copy(y.address.flat(), pool.address.flat(), k_semaphore_bytes, native));
        signal(channel.shown, frame + 1, native);
        check(fake.entry<decltype(::cuStreamEndCapture)>("cuStreamEndCapture")(native, &graph));
        graphs.push_back(graph);
        NativeCapture result;
        result.graph = graph;
        result.regions = {{"x", x}, {"y", y}};
        result.scratch = {{"pool", pool}};
        result.semaphores = {{"ready", channel.ready.get()}, {"shown", channel.shown.get()}};
        result.scalars = {{"frame", Number{u64, frame}}};
        return result;
    }
    std::vector<CUgraph> graphs;
};

TEST_F(SemaphoreAdoption, IsVerifiedWithoutThemAndMeetsThemInEveryCall)
{
    const Channel one = channel(), two = channel();
    const Buffer x = numbers(3), y = numbers(-1), pool = numbers(0);
    const Buffer x2 = numbers(3), y2 = device.allocate(2 * k_semaphore_bytes),
                 pool2 = device.allocate(3 * k_semaphore_bytes);
    const MemoryRef moved_y{y2.memory().address + k_semaphore_bytes, k_semaphore_bytes},
        moved_pool{pool2.memory().address + 256, k_semaphore_bytes};
    const Adoption adoption{.first = captured(x, pool, y, one, 40),
                            .second = captured(x2, moved_pool, moved_y, two, 47)};
    Spec declared = spec(one);
    {
        Cache cache{options()};
        Function f = cache.adopt("copy", device, declared, adoption);
        EXPECT_EQ(f.report().outcome, Outcome::recorded) << f.report().reason;
        EXPECT_EQ(read(y), all(-1)) << "the caller's memory is put back";
        for (const Channel& channel : {one, two}) EXPECT_EQ(fake.value_of(channel.shown), 0U);
        fake.signal(one.ready, 5);
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", std::uint64_t{5}}}), Outcome::replayed);
        EXPECT_EQ(read(y), all(3));
        EXPECT_EQ(fake.value_of(one.shown), 6U);
        EXPECT_THAT(cache.readable("copy"), HasSubstr("without its semaphores"));
    }
    const Channel other = channel(9);
    Cache cache{options()};
    Function f = cache.load("copy", device, spec(other));
    const Buffer from = numbers(8), to = numbers(-1);
    EXPECT_EQ(f({{"x", from}, {"y", to}, {"frame", std::uint64_t{9}}}), Outcome::replayed);
    EXPECT_EQ(read(to), all(8));
    EXPECT_EQ(fake.value_of(other.shown), 10U);
    EXPECT_EQ(fake.value_of(one.shown), 6U);
}

} // namespace
} // namespace warmgraph::test::semaphores_test
