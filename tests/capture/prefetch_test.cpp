// Cache::prefetch: device code is there before the first call, and nothing else is different.
#include <chrono>
#include <thread>

#include "facade_fixture.hpp"

namespace warmgraph::test::prefetch_test {
namespace {

namespace fs = std::filesystem;

class Prefetch : public FacadeTest {
protected:
    [[nodiscard]] Function wrapped(Cache& cache, const std::string& name = "f") const
    {
        Spec spec;
        spec.inputs = {input("x", f32, {k_count})};
        spec.outputs = {output("y", f32, {k_count})};
        spec.code = {program};
        spec.version = "1";
        return cache.wrap(name, device, spec, [this](Recorder& r) {
            const auto groups = static_cast<std::uint32_t>(r.sizes("x")[0] / 16);
            r.stream().launch(program, "add_one", {.grid = {groups}, .block = {16}}, r["x"], r["y"]);
        });
    }
    Outcome call(Function& f, std::int64_t count) const
    {
        const Buffer x = floats(5, count), y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        const Outcome outcome = f({{"x", Tensor{x, f32, {count}, {}}}, {"y", Tensor{y, f32, {count}, {}}}});
        EXPECT_EQ(read(y), read(floats(6, count)));
        return outcome;
    }
    void record(const std::vector<std::int64_t>& counts) const
    {
        Cache cache{options()};
        Function f = wrapped(cache);
        for (const std::int64_t count : counts) ASSERT_EQ(call(f, count), Outcome::recorded);
    }
    /// Of its last first call.
    [[nodiscard]] static bool has_phase(const Function& f, std::string_view name)
    {
        const auto phases = f.report().phases;
        return std::ranges::find(phases, name, [](const auto& phase) { return std::string_view{phase.first}; }) !=
               phases.end();
    }
    void remove_images() const { fs::remove_all(dir.path() / "cache" / "images"); }
    /// False where it does not happen.
    [[nodiscard]] static bool loads(const Cache& cache, std::chrono::milliseconds limit = std::chrono::seconds{30})
    {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (cache.statistics().images_loaded == 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        return cache.statistics().images_loaded != 0;
    }
};

TEST_F(Prefetch, LoadsTheCodeThatACallThenFinds)
{
    record({16, 32, 48});
    Cache cache{options(Policy::require_hit)};
    cache.prefetch("f", device);
    ASSERT_TRUE(loads(cache));
    remove_images(); // whoever loaded them now would fail
    Function f = wrapped(cache);
    for (const std::int64_t count : {48, 16}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().images_loaded, 1U);
    EXPECT_EQ(cache.statistics().hits, 2U) << "to have loaded is none";
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(Prefetch, RestoresTheGraphOfTheLastUsedEntryWhichTheCallBindsToItsMemory)
{
    record({16, 32});
    Cache cache{options(Policy::require_hit)};
    cache.prefetch("f", device);
    ASSERT_TRUE(loads(cache));
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 32), Outcome::replayed);
    EXPECT_TRUE(has_phase(f, "prepared"));
    EXPECT_FALSE(has_phase(f, "build"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(f, 32), Outcome::replayed);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
    EXPECT_FALSE(has_phase(f, "prepared"));
    EXPECT_EQ(cache.statistics().hits, 2U);
}

TEST_F(Prefetch, AnotherShapeThanTheLastUsedOneIsRestoredByItsCall)
{
    record({16, 32});
    Cache cache{options(Policy::require_hit)};
    cache.prefetch("f", device);
    ASSERT_TRUE(loads(cache));
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
    EXPECT_FALSE(has_phase(f, "prepared"));
    EXPECT_EQ(call(f, 32), Outcome::replayed);
    EXPECT_FALSE(has_phase(f, "prepared")) << "it went when the call needed another";
}

TEST_F(Prefetch, ABeginningOfNamesStandsForAllThatHaveIt)
{
    const std::vector<std::string> names{"graphs-1", "graphs-2", "graphs-10", "other"};
    {
        Cache cache{options()};
        for (const auto& name : names) {
            Function f = wrapped(cache, name);
            ASSERT_EQ(call(f, 16), Outcome::recorded);
        }
    }
    Cache cache{options(Policy::require_hit)};
    cache.prefetch("graphs-*", device);
    ASSERT_TRUE(loads(cache));
    for (const auto& name : names) {
        Function f = wrapped(cache, name);
        EXPECT_EQ(call(f, 16), Outcome::replayed);
        if (name == "graphs-1") {
            EXPECT_TRUE(has_phase(f, "prepared")) << "it was used first, and is the first";
        }
        if (name == "other") {
            EXPECT_FALSE(has_phase(f, "prepared"));
        }
    }
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
    EXPECT_THROW(cache.prefetch("*", device), Exception);
    EXPECT_THROW(cache.prefetch("gr*phs-1", device), Exception);
}

TEST_F(Prefetch, OfATableWaitsWhileItIsPaused)
{
    const std::vector<std::string> names{"graphs-1", "graphs-2", "graphs-3", "graphs-4", "graphs-5"};
    {
        Cache cache{options()};
        for (const auto& name : names) {
            Function f = wrapped(cache, name);
            ASSERT_EQ(call(f, 16), Outcome::recorded);
        }
    }
    // How many of the last three are found restored. A thread may be late for once: what counts is that it can be so.
    const auto restored = [&](bool pauses, bool ends) {
        Cache cache{options(Policy::require_hit)};
        cache.prefetch("graphs-*", device);
        for (int i = 0; i < 20; ++i) { // a pause ends by itself
            if (pauses) cache.pause_prefetch();
            if (ends) cache.prefetch("graphs-*", device);
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        }
        std::ptrdiff_t count = 0;
        for (auto name = names.rbegin(); name != names.rbegin() + 3; ++name) {
            if (pauses && !ends) cache.pause_prefetch();
            Function f = wrapped(cache, *name);
            EXPECT_EQ(call(f, 16), Outcome::replayed) << "nobody waits for what waits";
            count += has_phase(f, "prepared") ? 1 : 0;
        }
        return count;
    };
    const auto can_be = [&](std::ptrdiff_t count, bool pauses, bool ends) {
        for (int tries = 0; tries < 50; ++tries)
            if (restored(pauses, ends) == count) return true;
        return false;
    };
    EXPECT_TRUE(can_be(0, true, false));
    EXPECT_TRUE(can_be(3, true, true)) << "who asks for it again ends the pause";
    EXPECT_TRUE(can_be(3, false, false));
    Cache left{options(Policy::require_hit)};
    left.prefetch("graphs-*", device);
    left.pause_prefetch();
    std::this_thread::sleep_for(std::chrono::seconds{1});
    Function last = wrapped(left, names.back());
    EXPECT_EQ(call(last, 16), Outcome::replayed);
    EXPECT_TRUE(has_phase(last, "prepared")) << "a pause that nobody ends ends by itself";
}

TEST_F(Prefetch, AnEntryThatWasRecordedAgainMeanwhileIsReadAgain)
{
    record({16});
    Cache cache{options(Policy::require_hit)};
    cache.prefetch("f", device);
    ASSERT_TRUE(loads(cache));
    {
        Cache again{options(Policy::refresh)};
        Function f = wrapped(again);
        ASSERT_EQ(call(f, 16), Outcome::recorded);
    }
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
    EXPECT_TRUE(has_phase(f, "build"));
}

TEST_F(Prefetch, WithoutItTheSameCallFails)
{
    record({16});
    Cache cache{options(Policy::require_hit)};
    remove_images();
    Function f = wrapped(cache);
    EXPECT_THROW(static_cast<void>(call(f, 16)), Exception);
}

TEST_F(Prefetch, DoesNothingWhereNothingMayBeReplayedOrIsThere)
{
    record({16});
    for (const Policy policy : {Policy::off, Policy::refresh}) {
        Cache cache{options(policy)};
        cache.prefetch("f", device);
        EXPECT_FALSE(loads(cache, std::chrono::milliseconds{30}));
    }
    Cache cache{options()};
    cache.prefetch("other", device);
    EXPECT_FALSE(loads(cache, std::chrono::milliseconds{30}));
    EXPECT_THROW(cache.prefetch("../f", device), Exception);
}

TEST_F(Prefetch, LeavesDamageToTheCall)
{
    record({16});
    remove_images();
    Cache cache{options()};
    cache.prefetch("f", device);
    EXPECT_FALSE(loads(cache, std::chrono::milliseconds{50}));
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 16), Outcome::recorded);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
}

TEST_F(Prefetch, MayBeAskedForAtAnyTimeAndEndsWithItsCache)
{
    record({16});
    for (int i = 0; i < 20; ++i) {
        Cache cache{options()};
        for (int again = 0; again < 3; ++again) cache.prefetch("f", device);
        Function f = wrapped(cache);
        if (i % 2 == 0) {
            EXPECT_EQ(call(f, 16), Outcome::replayed);
        }
    }
}

} // namespace
} // namespace warmgraph::test::prefetch_test
