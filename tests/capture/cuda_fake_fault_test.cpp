// Promise G1 for the whole facade on CUDA: if any driver call fails, the caller still gets the function's result, the
// fault is counted, and nothing leaks. A driver call that the function itself makes for its answer fails as it would
// without a cache.
#include <array>
#include <map>
#include <thread>

#include "cache_options.hpp"
#include "cuda_or_fake.hpp"
#include "facade_fixture.hpp"
#include "stride.hpp"

namespace warmgraph::test::cuda_fake_fault_test {
namespace {

constexpr std::int32_t k_count = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

const std::vector<std::int32_t> k_right(k_count, 42), k_right_moved(k_count, 88);

struct Answer {
    Outcome outcome = Outcome::eager;
    std::vector<std::int32_t> values, moved_values;
    std::optional<Exception> thrown, moved_thrown; ///< exceptions of the first and of the second call
    Statistics statistics;
    std::string reason;
};

class CudaFakeFacade : public testing::Test {
protected:
    CudaFakeFacade() { choose_driver(); }

    [[nodiscard]] CacheOptions options() const
    {
        CacheOptions options = cache_options("toy", dir.path() / "cache");
        options.probing_ms = 0; // makes only the first probes, which are always made
        return options;
    }
    /// y = x.
    static Function copying(Cache& cache, const Device& device)
    {
        Spec spec = x_to_y(i32, k_count);
        spec.version = "1";
        return cache.wrap("f", device, spec, [](Recorder& r) { r.stream().copy(r["y"], r["x"], 128); });
    }
    /// Opens device, cache and function over `dir`, as a new process does. Makes one call, and a second call with other
    /// memory, which must be bound. `arm` sets the fault. The fault is active from the start of the first call to the
    /// end of the second.
    template <class Arm>
    Answer call(Arm arm)
    {
        const Device device{"cuda:0"};
        const Program program = device.program("small", k_fake_cuda_program);
        const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5)), y = device.allocate(128);
        const Buffer other_x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 50));
        const Buffer other_y = device.allocate(128);
        Cache cache{options()};
        Spec spec = x_to_y(i32, k_count);
        spec.scalars = {scalar("amount", i32, 0, 100)};
        spec.code = {program};
        callable_threw = false;
        Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
            try {
                work(r, program);
            } catch (const Exception&) {
                callable_threw = true;
                throw;
            }
        });
        Stream elsewhere = device.stream(); // the work of the second call must wait for the first call's
        fake.reset();
        arm();
        Answer answer;
        answer.thrown = thrown_by([&] { answer.outcome = f({{"x", x}, {"y", y}, {"amount", 37}}); });
        answer.moved_thrown = thrown_by([&] { f(elsewhere, {{"x", other_x}, {"y", other_y}, {"amount", 38}}); });
        calls = fake.calls();
        positions = fake.fault_positions();
        call_names.clear();
        for (long i = 0; i < calls; ++i) call_names.push_back(fake.call(i));
        was_hit = fake.was_hit();
        instantiations = fake.calls_of("cuGraphInstantiate") + fake.calls_of("cuGraphInstantiateWithParams");
        failed_call = failing > 0 ? fake.call(failing - 1) : "";
        fake.reset();
        device.synchronize();
        elsewhere.synchronize();
        answer.values = y.read<std::int32_t>();
        answer.moved_values = other_y.read<std::int32_t>();
        answer.statistics = cache.statistics();
        answer.reason = f.report().reason;
        return answer;
    }
    static void work(Recorder& r, const Program& program)
    {
        const Address scratch = r.alloc("scratch", 128);
        r.stream().zero(scratch, 128);
        r.stream().copy(scratch, r["x"], 128);
        r.stream().launch(program, "add_scalar", k_launch, scratch, r.scalar<std::int32_t>("amount"), k_count);
        Stream& side = r.fork();
        side.launch(program, "copy", k_launch, r["y"], scratch, k_count);
        r.join(side);
    }
    Answer call()
    {
        return call([] {});
    }
    /// The function itself fails, and the cache has no part in it: the caller gets the error, and the next call is
    /// right.
    void expect_own_failure(const Answer& answer, Outcome undisturbed)
    {
        EXPECT_EQ(undisturbed, Outcome::recorded) << "a replay that fails is no failure of the function's";
        EXPECT_TRUE(callable_threw) << answer.thrown->what();
        if (failed_call.starts_with("cu")) { // NVRTC's failures have other error texts
            EXPECT_THAT(answer.thrown->what(), HasSubstr(failed_call));
        }
        ASSERT_FALSE(answer.moved_thrown) << answer.moved_thrown->what();
        ASSERT_EQ(answer.moved_values, k_right_moved);
    }
    /// Makes each driver call fail once. `prepare` brings the cache folder into its initial state.
    template <class Prepare>
    void expect_right_results(Prepare prepare, Outcome undisturbed)
    {
        static_cast<void>(call()); // does the work that a process does only once (CUPTI)
        const std::string before = fake.live();
        // On a busy machine, a wait asks the driver more often. So the run with the fewest queries counts.
        long total = 0;
        std::vector<long> all;
        std::vector<std::string> names;
        for (int i = 0; i < 4; ++i) {
            prepare();
            ASSERT_EQ(call().outcome, undisturbed);
            ASSERT_EQ(fake.live(), before);
            if (total != 0 && calls >= total) continue;
            total = calls;
            all = positions;
            names = call_names;
        }
        long counted = 0;
        std::map<std::string, std::uint64_t> of_entry;
        for (const long nth : all) {
            if (!is_taken(++of_entry[names.at(static_cast<std::size_t>(nth) - 1)])) continue;
            failing = nth;
            prepare();
            const CUresult status = failing % 2 == 0 ? CUDA_ERROR_UNKNOWN : CUDA_ERROR_OUT_OF_MEMORY;
            const Answer answer = call([&] { fake.fail_at(failing, status); });
            SCOPED_TRACE(fmt::format("call {} of {}, {}: {} ({})", failing, total, failed_call,
                                     static_cast<int>(answer.outcome), answer.reason));
            if (!was_hit) {
                ASSERT_LT(calls, failing) << "a quieter call has none of that number";
                continue;
            }
            ASSERT_EQ(fake.live(), before);
            if (answer.thrown) {
                expect_own_failure(answer, undisturbed);
                continue;
            }
            ASSERT_FALSE(answer.moved_thrown) << answer.moved_thrown->what();
            ASSERT_EQ(answer.values, k_right);
            ASSERT_EQ(answer.moved_values, k_right_moved);
            if (answer.outcome == Outcome::refused) {
                EXPECT_GE(answer.statistics.of(ArtifactKind::entries).refused, 1U);
                EXPECT_FALSE(answer.reason.empty());
            } else if (answer.outcome == Outcome::eager) {
                EXPECT_GE(answer.statistics.cache_faults, 1U);
                EXPECT_FALSE(answer.reason.empty());
            }
            counted += answer.outcome != undisturbed ? 1 : 0;
        }
        EXPECT_GE(counted, 10 / static_cast<long>(k_stride));
    }
    void forget() { std::filesystem::remove_all(dir.path() / "cache"); }

    TempDir dir;
    FakeCuda fake;
    long failing = 0, calls = 0;
    std::vector<long> positions;
    std::vector<std::string> call_names;
    bool was_hit = false, callable_threw = false;
    long instantiations = 0; ///< calls of instantiate between reset() and the end of the second call
    std::string failed_call;
};

// This test must run first, because a process subscribes to CUPTI only once.
TEST_F(CudaFakeFacade, WithoutCuptiNothingIsRecordedAndTheCureIsNamed)
{
    const Answer answer = call([&] { fake.fail("cuptiSubscribe", 1, 0, CUDA_ERROR_UNKNOWN); });
    EXPECT_TRUE(was_hit);
    EXPECT_EQ(answer.outcome, Outcome::refused);
    EXPECT_EQ(answer.values, k_right);
    EXPECT_GE(answer.statistics.of(ArtifactKind::entries).refused, 1U);
    EXPECT_THAT(answer.reason, HasSubstr("cuptiSubscribe"));
}

TEST_F(CudaFakeFacade, WhatTheDriverDoesNotLetAnExecChangeAnotherOneHolds)
{
    ASSERT_EQ(call().outcome, Outcome::recorded);
    const auto replay = [&](auto arm) {
        const Answer answer = call(arm);
        EXPECT_EQ(answer.outcome, Outcome::replayed) << answer.reason;
        EXPECT_EQ(answer.values, k_right);
        EXPECT_EQ(answer.moved_values, k_right_moved);
        EXPECT_EQ(answer.statistics.cache_faults, 0U);
    };
    replay([] {});
    const long instantiated = instantiations;
    replay([&] { fake.fail("cuGraphExecMemcpyNodeSetParams", 1, 0, CUDA_ERROR_INVALID_VALUE); });
    EXPECT_TRUE(was_hit);
    EXPECT_EQ(instantiations, instantiated + 1);
}

/// The stream may wait for work that this thread enqueues later. If the host waited for the stream, it would hang.
TEST_F(CudaFakeFacade, HoweverOftenThatHappensTheHostWaitsForNothing)
{
    const Device device{"cuda:0"};
    const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5));
    const std::array ys{device.allocate(128), device.allocate(128)};
    Cache cache{options()};
    Function f = copying(cache, device);
    ASSERT_EQ(f({{"x", x}, {"y", ys[0]}}), Outcome::recorded);
    fake.reset();
    fake.fail("cuGraphExecMemcpyNodeSetParams", 1, 0, CUDA_ERROR_INVALID_VALUE);
    for (std::size_t i = 1; i <= 20; ++i) ASSERT_EQ(f({{"x", x}, {"y", ys[i % 2]}}), Outcome::replayed) << i;
    EXPECT_GE(fake.calls_of("cuGraphInstantiate") + fake.calls_of("cuGraphInstantiateWithParams"), 20);
    EXPECT_EQ(fake.calls_of("cuStreamSynchronize"), 0);
    fake.reset();
    device.synchronize();
    EXPECT_EQ(ys[0].read<std::int32_t>(), std::vector<std::int32_t>(k_count, 5));
}

TEST_F(CudaFakeFacade, ALaterCallAsksOnceWhetherItsStreamCaptures)
{
    const Device device{"cuda:0"};
    const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5));
    const Buffer y = device.allocate(128);
    Cache cache{options()};
    Function f = copying(cache, device);
    const std::vector<Arg> args{{"x", x}, {"y", y}};
    ASSERT_EQ(f.call(args), Outcome::recorded);
    ASSERT_EQ(f.call(args), Outcome::replayed);
    Stream stream = device.stream();
    ASSERT_EQ(f.call(stream, args), Outcome::replayed); // ordered after the work in the default stream
    for (const bool is_asked : {true, false}) {
        fake.reset();
        EXPECT_EQ(is_asked ? f.call(stream, args) : f.call_uncaptured(stream, args), Outcome::replayed);
        EXPECT_EQ(fake.calls_of("cuStreamIsCapturing"), is_asked ? 1 : 0);
        EXPECT_EQ(fake.calls_of("cuGraphLaunch"), 1);
    }
    EXPECT_FALSE(stream.is_capturing());
    stream.synchronize();
    EXPECT_EQ(y.read<std::int32_t>(), std::vector<std::int32_t>(k_count, 5));
}

TEST_F(CudaFakeFacade, RecordsAndRestoresInANewProcess)
{
    const std::string before = fake.live();
    const Answer cold = call(), warm = call();
    EXPECT_EQ(cold.outcome, Outcome::recorded) << cold.reason;
    EXPECT_EQ(warm.outcome, Outcome::replayed) << warm.reason;
    for (const Answer& answer : {cold, warm}) {
        EXPECT_EQ(answer.values, k_right);
        EXPECT_EQ(answer.moved_values, k_right_moved);
    }
    EXPECT_EQ(warm.statistics.of(ArtifactKind::entries).hits, 1U);
    EXPECT_EQ(fake.live(), before);
}

TEST_F(CudaFakeFacade, FaultsWhileRecordingLeaveTheCallerWithTheRightResult)
{
    expect_right_results([this] { forget(); }, Outcome::recorded);
}

TEST_F(CudaFakeFacade, FaultsWhileReplayingLeaveTheCallerWithTheRightResult)
{
    expect_right_results(
        [this] {
            forget();
            ASSERT_EQ(call().outcome, Outcome::recorded);
        },
        Outcome::replayed);
}

TEST_F(CudaFakeFacade, OutOfMemoryAtInstantiateRunsTheFunctionAsItIs)
{
    static_cast<void>(call());
    const std::string before = fake.live();
    const Answer answer = call([&] { fake.fail("cuGraphInstantiateWithParams", 1, 0, CUDA_ERROR_OUT_OF_MEMORY); });
    EXPECT_TRUE(was_hit);
    EXPECT_EQ(answer.values, k_right);
    EXPECT_EQ(answer.moved_values, k_right_moved);
    EXPECT_NE(answer.outcome, Outcome::replayed);
    EXPECT_GE(answer.statistics.cache_faults, 1U);
    EXPECT_THAT(answer.reason, HasSubstr("CUDA_ERROR_OUT_OF_MEMORY"));
    EXPECT_EQ(fake.live(), before);
}

TEST_F(CudaFakeFacade, AnImageForAnotherArchitectureRunsTheFunctionAsItIs)
{
    static_cast<void>(call());
    // The restored image is loaded first. The function's own program is compiled and loaded later.
    const Answer answer = call([&] { fake.fail("cuModuleLoadData", 1, 1, CUDA_ERROR_NO_BINARY_FOR_GPU); });
    EXPECT_TRUE(was_hit);
    EXPECT_EQ(answer.values, k_right);
    EXPECT_EQ(answer.moved_values, k_right_moved);
    EXPECT_NE(answer.outcome, Outcome::replayed);
    EXPECT_GE(answer.statistics.cache_faults + answer.statistics.of(ArtifactKind::entries).made, 1U);
    EXPECT_THAT(answer.reason, HasSubstr("the image is for architecture"));
}

/// Another process may be able to load the image, so it stays in its place.
TEST_F(CudaFakeFacade, OnlyAnImageThatIsToBlameCostsItsEntry)
{
    const auto is_set_aside = [&](CUresult status) {
        forget();
        static_cast<void>(call());
        const Answer answer = call([&] { fake.fail("cuModuleLoadData", 1, 1, status); });
        EXPECT_TRUE(was_hit);
        EXPECT_EQ(answer.values, k_right);
        EXPECT_NE(answer.outcome, Outcome::replayed);
        return std::filesystem::exists(dir.path() / "cache" / "quarantine");
    };
    for (const CUresult status : {CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_SOURCE,
                                  CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_NO_BINARY_FOR_GPU})
        EXPECT_TRUE(is_set_aside(status)) << status;
    for (const CUresult status :
         {CUDA_ERROR_JIT_COMPILER_NOT_FOUND, CUDA_ERROR_JIT_COMPILATION_DISABLED, CUDA_ERROR_SHARED_OBJECT_INIT_FAILED,
          CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND, CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN})
        EXPECT_FALSE(is_set_aside(status)) << status;
}

TEST_F(CudaFakeFacade, ADriverThatFailsForGoodIsAnErrorAndNotAWrongResult)
{
    static_cast<void>(call());
    const std::string before = fake.live();
    const Answer answer = call([&] { fake.fail("cuLaunchKernel", 1, 0, CUDA_ERROR_UNKNOWN), forget(); });
    for (const auto& thrown : {answer.thrown, answer.moved_thrown}) {
        EXPECT_TRUE(failed_with(thrown, ErrorCode::driver_failed, "cuLaunchKernel failed: CUDA_ERROR_UNKNOWN"));
    }
    EXPECT_EQ(fake.live(), before);
}

TEST_F(CudaFakeFacade, EntriesOpenedAheadAreUploadedAheadAndAFailureCostsTheirFirstLaunchOnly)
{
    const Device device{"cuda:0"};
    const Program program = device.program("small", k_fake_cuda_program);
    const auto wrap = [&](Cache& cache) {
        Spec spec;
        spec.outputs = {output("y", i32, {k_count})};
        spec.code = {program};
        return cache.wrap("f", device, spec, [&](Recorder& r) {
            r.stream().launch(program, "iota", k_launch, r["y"], static_cast<std::int32_t>(r.sizes("y")[0]));
        });
    };
    const auto call = [&](Function& f, std::int64_t count) {
        const Buffer y = device.upload<std::int32_t>(std::vector<std::int32_t>(static_cast<std::size_t>(count), -1));
        const Outcome outcome = f({{"y", Tensor{y, i32, {count}, {}}}});
        device.synchronize();
        EXPECT_EQ(y.read<std::int32_t>().back(), count - 1);
        return outcome;
    };
    {
        Cache cache{options()};
        Function f = wrap(cache);
        for (const std::int64_t count : {8, 16, 32}) ASSERT_EQ(call(f, count), Outcome::recorded);
    }
    for (const bool fails : {false, true}) {
        Cache cache{options()};
        Function f = wrap(cache);
        fake.reset();
        if (fails) fake.fail("cuGraphUpload", 0, 0, CUDA_ERROR_OUT_OF_MEMORY);
        const Preload preload = cache.preload({.wait = PreloadWait::all});
        EXPECT_EQ(preload.progress().loaded, 3U);
        EXPECT_EQ(fake.calls_of("cuGraphUpload"), 3);
        for (const std::int64_t count : {8, 16, 32}) EXPECT_EQ(call(f, count), Outcome::replayed);
        EXPECT_EQ(fake.calls_of("cuGraphUpload"), 3);
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
        fake.reset();
    }
}

TEST_F(CudaFakeFacade, TheFirstOfThoseOpenedAheadNeedsNoInstantiationForItsFirstCall)
{
    const Device device{"cuda:0"};
    const Program program = device.program("small", k_fake_cuda_program);
    Cache cache{options()};
    const auto wrap = [&](Cache& of) {
        Spec spec;
        spec.outputs = {output("y", i32, {k_count})};
        spec.code = {program};
        return of.wrap("f", device, spec,
                       [&](Recorder& r) { r.stream().launch(program, "iota", k_launch, r["y"], k_count); });
    };
    const auto call = [&](Function& f) {
        const Buffer y = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, -1));
        const Outcome outcome = f({{"y", y}});
        device.synchronize();
        EXPECT_EQ(y.read<std::int32_t>().back(), k_count - 1);
        return outcome;
    };
    {
        Function f = wrap(cache);
        ASSERT_EQ(call(f), Outcome::recorded);
    }
    Cache warm{options()};
    Function f = wrap(warm);
    fake.reset();
    for (const char* entry : {"cuGraphInstantiate", "cuGraphInstantiateWithParams"})
        fake.fail(entry, 0, 0, CUDA_ERROR_OUT_OF_MEMORY);
    Preload preload = warm.preload({.first = "f"});
    EXPECT_EQ(call(f), Outcome::replayed);
    preload.wait();
    EXPECT_EQ(fake.calls_of("cuGraphLaunch"), 0);
    fake.reset();
    EXPECT_EQ(call(f), Outcome::replayed) << f.report().reason;
    EXPECT_EQ(fake.calls_of("cuGraphLaunch"), 1);
    EXPECT_EQ(warm.statistics().cache_faults, 0U);
}

} // namespace
} // namespace warmgraph::test::cuda_fake_fault_test
