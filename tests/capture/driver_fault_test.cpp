// G1 on the fake driver: whichever call of the driver fails, the caller gets the function's result, the fault is
// counted, and nothing leaks.
#include <stdexcept>

#include "facade_fixture.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test {
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
        std::vector<std::int32_t> values, values_elsewhere;
        std::string reason;
        std::uint64_t refusals = 0, cache_faults = 0;
    };
    enum class Start : std::uint8_t { cold, opened };
    /// One call in a cache of its own over `dir`, with faults from the call's start to its end. Start::opened: open_all
    /// comes first, and the faults begin before it.
    Result call(const std::optional<backends::Fault>& fault, Start start = Start::cold)
    {
        CacheOptions options;
        options.model = "toy";
        options.cache_dir = (dir.path() / "cache").string();
        options.policy = Policy::read_write;
        options.world_size = 1;
        options.global_rank = 0;
        const Device device{"fake:0"};
        const Program program = device.program("small", k_program);
        const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, 5)),
                     y = device.allocate(k_count * 4), y_elsewhere = device.allocate(k_count * 4);
        Stream elsewhere = device.stream(); // the second call has to be put in order behind the first
        Cache cache{options};
        Spec spec;
        spec.inputs = {input("x", i32, {k_count})};
        spec.outputs = {output("y", i32, {k_count})};
        spec.scalars = {scalar("amount", i32, 0, 100)};
        spec.code = {program};
        Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
            const Address scratch = r.alloc("scratch", k_count * 4);
            r.stream().zero(scratch, k_count * 4);
            r.stream().copy(scratch, r["x"], k_count * 4);
            r.stream().launch(program, "add_scalar", k_launch, scratch, r.scalar<std::int32_t>("amount"), k_count);
            Stream& side = r.fork();
            side.launch(program, "copy", k_launch, r["y"], scratch, k_count);
            r.join(side);
        });
        if (fault) fake->inject(*fault);
        if (start == Start::opened) (void)cache.open_all({.wait = OpenWait::all});
        Result result;
        result.outcome = f({{"x", x}, {"y", y}, {"amount", 37}});
        result.reason = f.report().reason;
        static_cast<void>(f(elsewhere, {{"x", x}, {"y", y_elsewhere}, {"amount", 37}}));
        fake->clear_faults();
        device.synchronize();
        elsewhere.synchronize();
        result.values = y.read<std::int32_t>();
        result.values_elsewhere = y_elsewhere.read<std::int32_t>();
        result.refusals = cache.statistics().refusals;
        result.cache_faults = cache.statistics().cache_faults;
        return result;
    }
    /// Each entry point, each of its calls once. `prepare` puts the cache folder in the state to start from.
    template <class Prepare>
    void expect_right_results(Prepare prepare, Outcome undisturbed, Start start = Start::cold)
    {
        prepare();
        fake->clear_calls();
        ASSERT_EQ(call(std::nullopt, start).outcome, undisturbed);
        const backends::LiveObjects before = fake->live();
        std::map<std::string, std::uint64_t> counts;
        for (const auto& entry : fake->calls()) ++counts[entry];
        std::uint64_t injected = 0;
        for (const char* entry :
             {"allocate", "reserve_shadow", "upload", "download", "compile", "load", "create_stream", "instantiate",
              "image", "launch", "copy", "fill", "record_event", "wait", "synchronize", "begin_capture", "end_capture",
              "exec.launch", "exec.update"}) {
            for (std::uint64_t nth = 1; nth <= counts[entry]; ++nth) {
                prepare();
                const Result result = call(
                    backends::Fault{
                        entry, nth, backends::FaultLength::once, {ErrorCode::driver_failed, "injected fault"}},
                    start);
                ASSERT_EQ(result.values, std::vector<std::int32_t>(k_count, 42)) << entry << " call " << nth;
                ASSERT_EQ(result.values_elsewhere, result.values) << entry << " call " << nth;
                if (result.outcome == Outcome::refused || result.outcome == Outcome::eager) {
                    EXPECT_FALSE(result.reason.empty()) << entry << " call " << nth;
                }
                if (result.outcome == Outcome::refused) {
                    EXPECT_EQ(result.refusals, 1U) << entry << " call " << nth;
                } else if (result.outcome == Outcome::eager) {
                    EXPECT_GE(result.cache_faults, 1U) << entry << " call " << nth;
                }
                ASSERT_EQ(fake->live(), before) << entry << " call " << nth << " leaks";
                ++injected;
            }
        }
        EXPECT_GE(injected, 10U);
    }
    TempDir dir;
    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
};

TEST_F(DriverFaults, WhileRecordingLeaveTheCallerWithTheRightResult)
{
    expect_right_results([this] { std::filesystem::remove_all(dir.path() / "cache"); }, Outcome::recorded);
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
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), ErrorCode::driver_failed);
    EXPECT_THAT(thrown->what(), testing::HasSubstr("the device fell off the bus"));
    EXPECT_EQ(fake->live(), before);
}

TEST_F(DriverFaults, ALaunchThatStoppedHalfWayIsAnErrorAndTheFunctionIsNotRunOnTopOfIt)
{
    call(std::nullopt);
    fake->clear_calls();
    const auto thrown = thrown_by([this] {
        call(backends::Fault{
            "exec.launch", 1, backends::FaultLength::once, {ErrorCode::partly_launched, "node 1 of 4 failed"}});
    });
    fake->clear_faults();
    ASSERT_TRUE(thrown);
    EXPECT_EQ(thrown->code(), ErrorCode::partly_launched);
    EXPECT_EQ(fake->call_count("launch"), 0U) << "no kernel of the function itself was enqueued";
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
} // namespace warmgraph::test
