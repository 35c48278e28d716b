// External semaphores through the facade, over the fake driver, whose semaphores show what was done to them: a wait that
// nobody met and a signal that was done twice break its context.
#include <atomic>
#include <stdexcept>

#include "cuda_or_fake.hpp"
#include "facade_fixture.hpp"

namespace warmgraph::test {
namespace {

using std::int32_t;
using testing::AllOf;
using testing::HasSubstr;

constexpr int32_t k_count = 32;
constexpr std::uint64_t k_bytes = k_count * 4;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

/// What another API's work and the graph's meet in.
struct Channel {
    std::shared_ptr<void> ready, shown;
};

class Semaphores : public testing::Test {
protected:
    Semaphores() { choose_driver(); }
    [[nodiscard]] CacheOptions options() const
    {
        CacheOptions options;
        options.model = "toy";
        options.cache_dir = (dir.path() / "cache").string();
        options.policy = Policy::read_write;
        options.world_size = 1;
        options.global_rank = 0;
        options.probing_ms = 0; // the probes that are always made are calls enough
        return options;
    }
    [[nodiscard]] static Spec spec_of(const Program& program, const Channel& channel)
    {
        Spec spec;
        spec.inputs = {input("x", i32, {k_count})};
        spec.outputs = {output("y", i32, {k_count})};
        spec.scalars = {scalar("frame", u64, 0, 1'000'000)};
        spec.code = {program};
        spec.version = "1"; // for Cache::load
        spec.semaphores = {{"ready", channel.ready.get()}, {"shown", channel.shown.get()}};
        return spec;
    }
    [[nodiscard]] Channel channel(std::uint64_t ready = 0, std::uint64_t shown = 0) const
    {
        return {fake.semaphore(ready), fake.semaphore(shown)};
    }
    static void check(CUresult status)
    {
        if (status != CUDA_SUCCESS) throw std::runtime_error(fmt::format("status {}", static_cast<int>(status)));
    }
    void wait(const std::shared_ptr<void>& semaphore, std::uint64_t value, void* stream) const
    {
        auto* const handle = static_cast<CUexternalSemaphore>(semaphore.get());
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params{};
        params.params.fence.value = value;
        check(fake.entry<decltype(::cuWaitExternalSemaphoresAsync)>("cuWaitExternalSemaphoresAsync")(
            &handle, &params, 1, static_cast<CUstream>(stream)));
    }
    void signal(const std::shared_ptr<void>& semaphore, std::uint64_t value, void* stream) const
    {
        auto* const handle = static_cast<CUexternalSemaphore>(semaphore.get());
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params{};
        params.params.fence.value = value;
        check(fake.entry<decltype(::cuSignalExternalSemaphoresAsync)>("cuSignalExternalSemaphoresAsync")(
            &handle, &params, 1, static_cast<CUstream>(stream)));
    }
    /// Waits until the frame is ready, y = x + 1, and says that it may be shown.
    [[nodiscard]] Callable work(const Program& program, const Channel& channel) const
    {
        return [this, program, channel](Recorder& r) {
            const auto frame = r.scalar<std::uint64_t>("frame");
            wait(channel.ready, frame, r.stream().native());
            const Address scratch = r.alloc("scratch", k_bytes);
            r.stream().copy(scratch, r["x"], k_bytes);
            r.stream().launch(program, "add_scalar", k_launch, scratch, int32_t{1}, k_count);
            r.stream().copy(r["y"], scratch, k_bytes);
            signal(channel.shown, frame, r.stream().native());
        };
    }
    TempDir dir;
    FakeCuda fake;
};

/// With a device of its own.
class OnDevice : public Semaphores {
protected:
    [[nodiscard]] Buffer numbers(int32_t value) const
    {
        return device.upload<int32_t>(std::vector<int32_t>(k_count, value));
    }
    [[nodiscard]] std::vector<int32_t> read(const Buffer& buffer) const
    {
        device.synchronize(); // reports a semaphore that was misused
        return buffer.read<int32_t>();
    }
    [[nodiscard]] static std::vector<int32_t> all(int32_t value) { return std::vector<int32_t>(k_count, value); }
    [[nodiscard]] Spec spec(const Channel& channel) const { return spec_of(program, channel); }
    [[nodiscard]] Function wrap(Cache& cache, const Channel& channel) const
    {
        return cache.wrap("f", device, spec(channel), work(program, channel));
    }
    /// One call for `frame`, once it is ready; y and the counter tell that it was done, once.
    void expect_call(Function& f, const Channel& channel, std::uint64_t frame, Outcome outcome)
    {
        fake.signal(channel.ready, frame);
        const auto value = static_cast<int32_t>(frame);
        const Buffer x = numbers(value), y = numbers(-1);
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", frame}}), outcome) << f.report().reason;
        EXPECT_EQ(read(y), all(value + 1));
        EXPECT_EQ(fake.value_of(channel.shown), frame);
    }
    /// The first call leaves its recording to a later one; this is both.
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
    for (const bool verified : {false, true}) { // elsewhere: other semaphores, other values
        const Channel there = channel(0, 20);
        CacheOptions with = options();
        with.verify_on_load = verified;
        Cache cache{with};
        Function f = wrap(cache, there);
        if (verified) expect_call(f, there, 21, Outcome::eager); // a later call compares, when the answer is there
        expect_call(f, there, 22, Outcome::replayed);
        expect_call(f, there, 23, Outcome::replayed);
        EXPECT_EQ(cache.statistics().hits, 1U);
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
    }
    const Channel loaded = channel();
    Cache cache{options()};
    Function f = cache.load("f", device, spec(loaded));
    EXPECT_EQ(cache.open_all({.wait = OpenWait::all}).progress().opened, 1U);
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
    const auto thrown = thrown_by([&] { (void)f({{"x", x}, {"y", y}, {"frame", std::uint64_t{11}}}); });
    ASSERT_TRUE(thrown);
    EXPECT_THAT(thrown->what(), AllOf(HasSubstr("external semaphore 'shown'"), HasSubstr("Spec::semaphores")));
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
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("(semaphore signal)"), HasSubstr("Spec::semaphores")));
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
    expect_call(f, here, 12, Outcome::refused); // recording would have met them in each of its runs
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("external semaphore 'ready'"), HasSubstr("Spec::semaphores")));
    expect_call(f, here, 13, Outcome::refused);
}

TEST_F(OnDevice, AValueOfTheFunctionsOwnCountingIsRefusedAndTheFunctionRunsAsItIs)
{
    const Channel here = channel();
    std::atomic<std::uint64_t> count = 0;
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(here), [&](Recorder& r) {
        r.stream().copy(r["y"], r["x"], k_bytes);
        signal(here.shown, ++count, r.stream().native());
    });
    const Buffer x = numbers(3), y = numbers(-1);
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", std::uint64_t{1}}}), Outcome::eager);
    EXPECT_EQ(fake.value_of(here.shown), 1U);
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", std::uint64_t{1}}}), Outcome::refused);
    EXPECT_THAT(f.report().reason,
                AllOf(HasSubstr("something else the second time"), HasSubstr("semaphore 0 of value")));
    EXPECT_EQ(read(y), all(3));
    EXPECT_EQ(fake.value_of(here.shown), 2U) << "signalled by the two calls' own runs alone";
}

/// The thread that calls may be the one that signals afterwards what the call's work waits for.
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
        EXPECT_EQ(cache.statistics().recordings, 0U);
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
    /// ready >= frame; x -> pool -> y; shown = frame + 1.
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
        check(copy(pool.address.flat(), x.address.flat(), k_bytes, native));
        check(copy(y.address.flat(), pool.address.flat(), k_bytes, native));
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
    const Buffer x2 = numbers(3), y2 = device.allocate(2 * k_bytes), pool2 = device.allocate(3 * k_bytes);
    const MemoryRef moved_y{y2.memory().address + k_bytes, k_bytes}, moved_pool{pool2.memory().address + 256, k_bytes};
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

// G1: whichever call of the driver fails, the result is right and the frame is signalled once.
TEST_F(Semaphores, FaultsOfTheDriverNeitherLoseNorRepeatASignal)
{
    struct Answer {
        Outcome outcome = Outcome::eager; ///< of the second call
        std::optional<std::string> thrown, thrown_second;
        std::vector<int32_t> values;
        std::uint64_t shown = 0;
        long calls = 0;
        bool was_hit = false;
        std::string failed_call, reason;
    };
    const auto call = [&](long failing, CUresult status) {
        const Device device{"cuda:0"};
        const Program program = device.program("small", k_fake_cuda_program);
        const Channel here = channel(12);
        const Buffer x = device.upload<int32_t>(std::vector<int32_t>(k_count, 5)), y = device.allocate(k_bytes);
        Cache cache{options()};
        const Callable own = work(program, here);
        bool callable_threw = false;
        Function f = cache.wrap("f", device, spec_of(program, here), [&](Recorder& r) {
            try {
                own(r);
            } catch (...) {
                callable_threw = true;
                throw;
            }
        });
        fake.reset();
        if (failing > 0) fake.fail_at(failing, status);
        Answer answer;
        const auto failure_of = [](const auto& call_it) -> std::optional<std::string> {
            try {
                call_it();
            } catch (const std::exception& failure) {
                return failure.what();
            }
            return std::nullopt;
        };
        answer.thrown = failure_of([&] { f({{"x", x}, {"y", y}, {"frame", std::uint64_t{11}}}); });
        answer.thrown_second =
            failure_of([&] { answer.outcome = f({{"x", x}, {"y", y}, {"frame", std::uint64_t{12}}}); });
        EXPECT_TRUE(callable_threw || (!answer.thrown && !answer.thrown_second));
        answer.calls = fake.calls();
        answer.was_hit = fake.was_hit();
        if (failing > 0) answer.failed_call = fake.call(failing - 1);
        answer.reason = f.report().reason;
        // Not reset() yet: it would forget that a semaphore was misused.
        fake.fail_at(1'000'000'000, CUDA_ERROR_UNKNOWN);
        device.synchronize();
        answer.values = y.read<int32_t>();
        answer.shown = fake.value_of(here.shown);
        fake.reset();
        return answer;
    };
    const auto forget = [&] { std::filesystem::remove_all(dir.path() / "cache"); };
    static_cast<void>(call(0, CUDA_SUCCESS)); // what a process does once (CUPTI) is done
    for (const bool replays : {false, true}) {
        if (!replays) forget();
        const Answer undisturbed = call(0, CUDA_SUCCESS);
        ASSERT_EQ(undisturbed.outcome, replays ? Outcome::replayed : Outcome::recorded) << undisturbed.reason;
        const std::string before = fake.live();
        for (long failing = 1; failing <= undisturbed.calls; failing += failing < 200 ? 1 : 5) {
            forget();
            if (replays) {
                ASSERT_EQ(call(0, CUDA_SUCCESS).outcome, Outcome::recorded);
            }
            const CUresult status = failing % 2 == 0 ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY;
            const Answer answer = call(failing, status);
            SCOPED_TRACE(fmt::format("call {} of {}, {}: {} ({})", failing, undisturbed.calls, answer.failed_call,
                                     to_string(answer.outcome), answer.reason));
            ASSERT_TRUE(answer.was_hit);
            ASSERT_EQ(fake.live(), before);
            ASSERT_EQ(answer.values, std::vector<int32_t>(k_count, 6)); // of either call
            // The function's own failure, in its answer, passes through; whether it had signalled is its business.
            ASSERT_FALSE(replays && (answer.thrown || answer.thrown_second));
            if (answer.thrown_second) {
                ASSERT_THAT(answer.shown, testing::AnyOf(11U, 12U));
            } else {
                ASSERT_EQ(answer.shown, 12U);
            }
        }
    }
}

} // namespace
} // namespace warmgraph::test
