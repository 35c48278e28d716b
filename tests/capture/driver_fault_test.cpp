// Promise G1 on the fake driver: if any driver call fails, the caller still gets the function's result, the fault is
// counted, and nothing leaks. Driver calls that the function itself makes for its answer belong to the caller: they
// throw, as without a cache, and the next call is right.
#include <map>
#include <stdexcept>

#include "cache_options.hpp"
#include "facade_fixture.hpp"
#include "stride.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::driver_fault_test {
namespace {

constexpr const char* k_program =
    "kernel add_scalar(memory x, value amount, value n)\nkernel copy(memory to, memory from, value n)\n";
constexpr std::int32_t k_count = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

class DriverFaults : public testing::Test {
protected:
    DriverFaults() { backends::register_backend(fake); }

    struct Result {
        Outcome outcome = Outcome::eager;
        bool has_thrown = false; ///< whether the first call threw an exception
        ErrorCode code = ErrorCode::internal;
        std::vector<std::int32_t> values, values_elsewhere;
        std::string reason;
        std::uint64_t refusals = 0, cache_faults = 0;
        std::map<std::string, std::uint64_t> first_counts,
            counts; ///< how many driver calls the first call made, and all calls together
    };
    enum class Start : std::uint8_t { cold, opened };
    /// Calls the function in a new cache over `dir`. The fault is active from the start of this call to its end. Then
    /// calls again. With Start::opened, preload runs first, and the fault is active before it.
    Result call(const std::optional<backends::Fault>& fault, Start start = Start::cold,
                Policy policy = Policy::read_write)
    {
        CacheOptions options = cache_options("toy", dir.path() / "cache", policy);
        options.probing_ms = 60'000; // so much time that each run makes the same probes
        const Device device{"fake:0"};
        const Program program = device.program("small", k_program);
        const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5)),
                     y = device.allocate(k_count * 4), y_elsewhere = device.allocate(k_count * 4);
        Stream elsewhere = device.stream(); // the work of the second call must wait for the first call's
        Cache cache{options};
        Function f = wrap(cache, device, program);
        fake->clear_calls();
        if (fault) fake->inject(*fault);
        if (start == Start::opened) (void)cache.preload({.wait = PreloadWait::all});
        Result result;
        const std::vector<Arg> args{{"x", x}, {"y", y}, {"amount", 37}};
        try {
            result.outcome = f.call(args);
            result.reason = f.report().reason;
        } catch (const Exception& thrown) {
            result.has_thrown = true;
            result.code = thrown.code();
            result.reason = thrown.what();
        }
        for (const auto& entry : fake->calls()) ++result.first_counts[entry];
        if (result.has_thrown) result.outcome = f.call(args); // the call after a failure must be right
        static_cast<void>(f(elsewhere, {{"x", x}, {"y", y_elsewhere}, {"amount", 37}}));
        for (const auto& entry : fake->calls()) ++result.counts[entry];
        fake->clear_faults();
        device.synchronize();
        elsewhere.synchronize();
        result.values = y.read<std::int32_t>();
        result.values_elsewhere = y_elsewhere.read<std::int32_t>();
        result.refusals = cache.statistics().of(ArtifactKind::entries).refused;
        result.cache_faults = cache.statistics().cache_faults;
        return result;
    }
    static Function wrap(Cache& cache, const Device& device, const Program& program)
    {
        Spec spec = x_to_y(i32, k_count);
        spec.scalars = {scalar("amount", i32, 0, 100)};
        spec.code = {program};
        return cache.wrap("f", device, spec, [program](Recorder& r) {
            const Address scratch = r.alloc("scratch", k_count * 4);
            r.stream().zero(scratch, k_count * 4);
            r.stream().copy(scratch, r["x"], k_count * 4);
            r.stream().launch(program, "add_scalar", k_launch, scratch, r.scalar<std::int32_t>("amount"), k_count);
            Stream& side = r.fork();
            side.launch(program, "copy", k_launch, r["y"], scratch, k_count);
            r.join(side);
        });
    }
    static backends::Fault fault_of(const std::string& entry, std::uint64_t nth)
    {
        return {entry, nth, backends::FaultLength::once, {ErrorCode::driver_failed, "injected fault"}};
    }
    /// Without a cache: how many faults in the callable's own driver calls reach the caller, by entry point.
    std::map<std::string, std::uint64_t> thrown_without_a_cache()
    {
        std::map<std::string, std::uint64_t> thrown;
        const auto counts = call(std::nullopt, Start::cold, Policy::off).first_counts;
        for (const auto& [entry, count] : counts)
            for (std::uint64_t nth = 1; nth <= count; ++nth)
                thrown[entry] += call(fault_of(entry, nth), Start::cold, Policy::off).has_thrown ? 1 : 0;
        return thrown;
    }
    void expect_right(const Result& result, const std::string& which)
    {
        ASSERT_EQ(result.values, std::vector<std::int32_t>(k_count, 42)) << which;
        ASSERT_EQ(result.values_elsewhere, result.values) << which;
        if (result.has_thrown) {
            EXPECT_THAT(result.reason, HasSubstr("injected fault")) << which;
            return;
        }
        if (result.outcome == Outcome::refused || result.outcome == Outcome::eager) {
            EXPECT_FALSE(result.reason.empty()) << which;
        }
        if (result.outcome == Outcome::refused) {
            EXPECT_EQ(result.refusals, 1U) << which;
        } else if (result.outcome == Outcome::eager) {
            EXPECT_GE(result.cache_faults, 1U) << which;
        }
    }
    /// Makes each call of each entry point fail once. `prepare` brings the cache folder into its initial state.
    /// `of_the_caller`: for each entry point, how many faults hit the callable's own calls in its answer.
    template <class Prepare>
    void expect_right_results(Prepare prepare, Outcome undisturbed, Start start = Start::cold,
                              const std::map<std::string, std::uint64_t>& of_the_caller = {})
    {
        prepare();
        const Result plain = call(std::nullopt, start);
        ASSERT_EQ(plain.outcome, undisturbed) << plain.reason;
        const backends::LiveObjects before = fake->live();
        std::uint64_t injected = 0;
        for (const auto& [entry, count] : plain.counts) {
            std::uint64_t thrown = 0;
            std::uint64_t left_out = 0; // how many faults hit the caller's own calls
            for (std::uint64_t nth = 1; nth <= count; ++nth) {
                if (!is_taken(nth)) {
                    ++left_out;
                    continue;
                }
                prepare();
                const std::string which = fmt::format("{} call {} of {}", entry, nth, count);
                const Result result = call(fault_of(entry, nth), start);
                expect_right(result, which);
                if (HasFatalFailure()) return;
                ASSERT_EQ(fake->live(), before) << which << " leaks";
                thrown += result.has_thrown ? 1 : 0;
                ++injected;
            }
            const auto expected = of_the_caller.find(entry);
            const std::uint64_t most = expected == of_the_caller.end() ? 0U : expected->second;
            EXPECT_LE(thrown, most) << entry << ": faults that reached the caller, out of " << count;
            EXPECT_GE(thrown + left_out, most) << entry << ": faults that reached the caller, out of " << count;
        }
        EXPECT_GE(injected, 8U);
    }
    TempDir dir;
    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
};

/// A fault in the answer is the function's own error, as without a cache. No other fault reaches the caller.
TEST_F(DriverFaults, WhileRecordingLeaveTheCallerWithTheRightResult)
{
    const auto of_the_caller = thrown_without_a_cache();
    EXPECT_GE(of_the_caller.size(), 6U);
    expect_right_results([this] { std::filesystem::remove_all(dir.path() / "cache"); }, Outcome::recorded, Start::cold,
                         of_the_caller);
}

TEST_F(DriverFaults, WhileReplayingLeaveTheCallerWithTheRightResult)
{
    expect_right_results(
        [this] {
            std::filesystem::remove_all(dir.path() / "cache");
            ASSERT_EQ(call(std::nullopt).outcome, Outcome::recorded);
        },
        Outcome::replayed);
}

TEST_F(DriverFaults, WhileOpeningAheadLeaveTheCallerWithTheRightResult)
{
    expect_right_results(
        [this] {
            std::filesystem::remove_all(dir.path() / "cache");
            ASSERT_EQ(call(std::nullopt).outcome, Outcome::recorded);
        },
        Outcome::replayed, Start::opened);
}

TEST_F(DriverFaults, ADriverThatFailsForGoodIsAnErrorAndNotAWrongResult)
{
    call(std::nullopt);
    const backends::LiveObjects before = fake->live();
    const auto thrown = thrown_by([this] {
        call(backends::Fault{
            "", 1, backends::FaultLength::for_ever, {ErrorCode::driver_failed, "the device fell off the bus"}});
    });
    fake->clear_faults();
    EXPECT_TRUE(failed_with(thrown, ErrorCode::driver_failed, "the device fell off the bus"));
    EXPECT_EQ(fake->live(), before);
}

TEST_F(DriverFaults, ALaunchThatStoppedHalfWayIsAnErrorAndTheFunctionIsNotRunOnTopOfIt)
{
    call(std::nullopt);
    const Result result = call(backends::Fault{
        "exec.launch", 1, backends::FaultLength::once, {ErrorCode::partly_launched, "node 1 of 4 failed"}});
    ASSERT_TRUE(result.has_thrown);
    EXPECT_EQ(result.code, ErrorCode::partly_launched);
    EXPECT_EQ(result.first_counts.count("launch"), 0U) << "no kernel of the function itself was enqueued";
}

TEST_F(DriverFaults, OutOfMemoryWhileRestoringRunsTheFunctionAsItIs)
{
    call(std::nullopt);
    const Result result = call(
        backends::Fault{"instantiate", 1, backends::FaultLength::for_ever, {ErrorCode::out_of_memory, "no memory"}});
    EXPECT_EQ(result.values, std::vector<std::int32_t>(k_count, 42));
    EXPECT_GE(result.cache_faults, 1U);
}

TEST_F(DriverFaults, WhatWasForkedIsJoinedWhereTheCallableThrows)
{
    const Device device{"fake:0"};
    const Buffer y = device.allocate(k_count * 4);
    CacheOptions options;
    options.model = "toy";
    options.policy = Policy::off;
    options.world_size = 1;
    options.global_rank = 0;
    Cache cache{options};
    Spec spec;
    spec.outputs = {output("y", i32, {k_count})};
    Function f = cache.wrap("f", device, spec, [](Recorder& r) {
        r.fork().zero(r["y"], k_count * 4);
        throw std::runtime_error("on purpose");
    });
    const auto what = [&]() -> std::string {
        try {
            f({{"y", y}});
        } catch (const std::runtime_error& thrown) {
            return thrown.what();
        }
        return "nothing was thrown";
    };
    fake->clear_calls();
    EXPECT_EQ(what(), "on purpose");
    EXPECT_EQ(fake->call_count("wait"), 2U) << "once to fork, once to join";
    fake->inject({"wait", 2});
    EXPECT_EQ(what(), "on purpose") << "also where the join fails";
}

} // namespace
} // namespace warmgraph::test::driver_fault_test
