// Tests a pair on a device that fails on request, and two pairs side by side.
#include "facade_fixture.hpp"
#include "stride.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::pair_fake_test {
namespace {

constexpr std::int32_t k_count = 16;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};
constexpr const char* k_program = "kernel add_scalar(memory x, value amount, value n)\n"
                                  "kernel copy(memory to, memory from, value n)\n";

/// A pair that computes y = x + 1 and saves x; backward computes dx = the saved x + 10.
class PairFake : public testing::Test {
protected:
    PairFake()
    {
        backends::register_backend(fake);
        device.emplace("fake:0");
        program.emplace(device->program("pair", k_program));
        x.emplace(filled(5)), y.emplace(filled(0)), dy.emplace(filled(3)), dx.emplace(filled(0));
    }
    [[nodiscard]] Buffer filled(std::int32_t value) const
    {
        return device->upload<std::int32_t>(std::vector<std::int32_t>(k_count, value));
    }
    [[nodiscard]] CacheOptions options() const
    {
        CacheOptions result;
        result.model = "pairs";
        result.cache_dir = (dir.path() / "cache").string();
        result.policy = Policy::read_write;
        result.world_size = 1;
        result.global_rank = 0;
        return result;
    }
    void launch(Recorder& r, std::string_view kernel, const std::vector<KernelArg>& args) const
    {
        r.stream().launch_list(*program, kernel, k_launch, args);
    }
    [[nodiscard]] Pair wrap(Cache& cache)
    {
        PairSpec spec;
        spec.forward.inputs = {input("x", i32, {k_count})};
        spec.forward.outputs = {output("y", i32, {k_count})};
        spec.forward.code = {*program};
        spec.backward.inputs = {input("dy", i32, {k_count})};
        spec.backward.outputs = {output("dx", i32, {k_count})};
        spec.saved = {{"h", i32, {k_count}}, {"g", i32, {k_count}}};
        return cache.wrap_pair(
            "step", *device, spec,
            [this](Recorder& r) {
                launch(r, "copy", {r["h"], r["x"], k_count});
                launch(r, "copy", {r["y"], r["x"], k_count});
                launch(r, "add_scalar", {r["y"], std::int32_t{1}, k_count});
                launch(r, "copy", {r["g"], r["y"], k_count});
            },
            [this](Recorder& r) {
                launch(r, "copy", {r["dx"], r["h"], k_count});
                launch(r, "add_scalar", {r["dx"], std::int32_t{10}, k_count});
            });
    }
    ForwardCall forward(Pair& pair) { return pair.forward({{"x", *x}, {"y", *y}}); }
    Outcome backward(Pair& pair, const ForwardCall& of) { return pair.backward(of, {{"dy", *dy}, {"dx", *dx}}); }
    /// Makes one step with this value. Expects right results.
    std::pair<Outcome, Outcome> step(Pair& pair, std::int32_t value)
    {
        x.emplace(filled(value));
        const ForwardCall call = forward(pair);
        const Outcome outcome = backward(pair, call);
        device->synchronize();
        EXPECT_EQ(y->read<std::int32_t>(), std::vector<std::int32_t>(k_count, value + 1));
        EXPECT_EQ(dx->read<std::int32_t>(), std::vector<std::int32_t>(k_count, value + 10));
        return {call.outcome, outcome};
    }

    TempDir dir;
    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend(backends::FakeOptions{.devices = 2});
    std::optional<Device> device;
    std::optional<Program> program;
    std::optional<Buffer> x, y, dy, dx;
};

TEST_F(PairFake, IsRecordedOnceAndReplayedByTheNextCache)
{
    for (const Outcome expected : {Outcome::recorded, Outcome::replayed}) {
        Cache cache{options()};
        Pair pair = wrap(cache);
        EXPECT_EQ(step(pair, 1), (std::pair{expected, expected})) << pair.report(PairHalf::backward).reason;
        EXPECT_EQ(step(pair, 2), (std::pair{Outcome::replayed, Outcome::replayed}));
        EXPECT_EQ(cache.statistics().cache_faults, 0U);
    }
}

TEST_F(PairFake, AStreamOfAnotherDeviceIsRefused)
{
    Cache cache{options()};
    Pair pair = wrap(cache);
    const Device neighbour{"fake:1"};
    Stream theirs = neighbour.stream();
    EXPECT_TRUE(failed_with(thrown_by([&] { pair.forward(theirs, {{"x", *x}, {"y", *y}}); }),
                            ErrorCode::invalid_argument, "the stream on fake:1"));
    const ForwardCall call = forward(pair);
    EXPECT_TRUE(thrown_by([&] { pair.backward(call, theirs, {{"dy", *dy}, {"dx", *dx}}); }));
    EXPECT_EQ(backward(pair, call), Outcome::recorded);
}

TEST_F(PairFake, AnArenaThatCannotBeAllocatedIsAnErrorAndGivesAllBack)
{
    Cache cache{options()};
    const auto before = fake->live();
    for (const std::uint64_t nth : {1U, 2U}) {
        fake->inject({"allocate", nth, backends::FaultLength::once, {ErrorCode::out_of_memory, "no memory left"}});
        const auto refused = thrown_by([&] { static_cast<void>(wrap(cache)); });
        fake->clear_faults();
        EXPECT_TRUE(failed_with(refused, ErrorCode::out_of_memory));
        EXPECT_EQ(fake->live(), before);
    }
    Pair pair = wrap(cache);
    EXPECT_EQ(step(pair, 4).second, Outcome::recorded);
}

TEST_F(PairFake, AFaultAnywhereWhileItIsRecordedLeavesTheResultsRight)
{
    std::uint64_t calls = 0;
    {
        CacheOptions own = options();
        own.cache_dir += "_count";
        Cache cache{own};
        Pair pair = wrap(cache);
        fake->clear_calls();
        step(pair, 1);
        calls = fake->calls().size();
    }
    ASSERT_GT(calls, 20U);
    int wrong = 0, thrown = 0;
    for (std::uint64_t nth = 1; nth <= calls; nth += k_stride) {
        CacheOptions own = options();
        own.cache_dir += std::to_string(nth);
        Cache cache{own};
        Pair pair = wrap(cache);
        x.emplace(filled(7));
        fake->inject({.entry = "", .nth = nth});
        // The function's own launches and copies may fail. Then the caller gets the error.
        const auto failed = thrown_by([&] { backward(pair, forward(pair)); });
        fake->clear_faults();
        thrown += failed ? 1 : 0;
        // In each case, the steps afterwards must be right.
        for (std::int32_t value = 10; value < 13; ++value) step(pair, value);
        wrong += HasFailure() ? 1 : 0;
        ASSERT_EQ(wrong, 0) << "fault at call " << nth;
    }
    EXPECT_LT(thrown, static_cast<int>(calls)) << "most faults cost a recording, and nothing else";
}

TEST_F(PairFake, LeavesNothingBehind)
{
    const auto before = fake->live();
    {
        Cache cache{options()};
        Pair pair = wrap(cache);
        for (std::int32_t value = 0; value < 3; ++value) step(pair, value);
        x.emplace(filled(5));
    }
    const auto after = fake->live();
    EXPECT_EQ(after.allocations, before.allocations);
    EXPECT_EQ(after.execs, before.execs);
    EXPECT_LE(after.modules, before.modules + 1) << "the program's own";
}

} // namespace
} // namespace warmgraph::test::pair_fake_test
