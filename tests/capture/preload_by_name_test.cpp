// Cache::preload of functions that are not wrapped yet: the graph is ready before the first call, and everything else
// stays the same.
#include <chrono>
#include <thread>

#include "facade_fixture.hpp"
#include "preload_by_name.hpp"

namespace warmgraph::test::preload_by_name_test {
namespace {

namespace fs = std::filesystem;

class PreloadByName : public FacadeTest {
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
    /// Whether the report of the function's last first call has the phase `name`.
    [[nodiscard]] static bool has_phase(const Function& f, std::string_view name)
    {
        const auto phases = f.report().phases;
        return std::ranges::find(phases, name, [](const auto& phase) { return std::string_view{phase.first}; }) !=
               phases.end();
    }
    void remove_images() const { fs::remove_all(dir.path() / "cache" / "images"); }
    /// Waits for a load. Returns false when there is no load within `limit`.
    [[nodiscard]] static bool loads(const Cache& cache, std::chrono::milliseconds limit = std::chrono::seconds{30})
    {
        const auto end = std::chrono::steady_clock::now() + limit;
        while (cache.statistics().images_loaded == 0 && std::chrono::steady_clock::now() < end)
            std::this_thread::sleep_for(std::chrono::milliseconds{1});
        return cache.statistics().images_loaded != 0;
    }
};

TEST_F(PreloadByName, LoadsTheCodeThatACallThenFinds)
{
    record({16, 32, 48});
    Cache cache{options(Policy::require_hit)};
    preload_by_name(cache, "f", device);
    ASSERT_TRUE(loads(cache));
    remove_images(); // from now on, loading an image would fail
    Function f = wrapped(cache);
    for (const std::int64_t count : {48, 16}) EXPECT_EQ(call(f, count), Outcome::replayed);
    EXPECT_EQ(cache.statistics().images_loaded, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 2U) << "to have loaded is none";
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(PreloadByName, RestoresTheGraphOfTheLastUsedEntryWhichTheCallBindsToItsMemory)
{
    record({16, 32});
    Cache cache{options(Policy::require_hit)};
    preload_by_name(cache, "f", device);
    ASSERT_TRUE(loads(cache));
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 32), Outcome::replayed);
    EXPECT_TRUE(has_phase(f, "preloaded"));
    EXPECT_FALSE(has_phase(f, "build"));
    for (int i = 0; i < 3; ++i) EXPECT_EQ(call(f, 32), Outcome::replayed);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
    EXPECT_FALSE(has_phase(f, "preloaded"));
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 2U);
}

TEST_F(PreloadByName, AnotherShapeThanTheLastUsedOneIsRestoredByItsCall)
{
    record({16, 32});
    Cache cache{options(Policy::require_hit)};
    preload_by_name(cache, "f", device);
    ASSERT_TRUE(loads(cache));
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
    EXPECT_FALSE(has_phase(f, "preloaded"));
    EXPECT_EQ(call(f, 32), Outcome::replayed);
    EXPECT_FALSE(has_phase(f, "preloaded")) << "it went when the call needed another";
}

TEST_F(PreloadByName, ABeginningOfNamesStandsForAllThatHaveIt)
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
    preload_by_name(cache, "graphs-*", device);
    ASSERT_TRUE(loads(cache));
    for (const auto& name : names) {
        Function f = wrapped(cache, name);
        EXPECT_EQ(call(f, 16), Outcome::replayed);
        if (name == "graphs-1") {
            EXPECT_TRUE(has_phase(f, "preloaded")) << "it was used first, and is the first";
        }
        if (name == "other") {
            EXPECT_FALSE(has_phase(f, "preloaded"));
        }
    }
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
    EXPECT_THROW(preload_by_name(cache, "*", device), Exception);
    EXPECT_THROW(preload_by_name(cache, "gr*phs-1", device), Exception);
}

TEST_F(PreloadByName, AnEntryThatWasRecordedAgainMeanwhileIsReadAgain)
{
    record({16});
    Cache cache{options(Policy::require_hit)};
    preload_by_name(cache, "f", device);
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

TEST_F(PreloadByName, WithoutItTheSameCallFails)
{
    record({16});
    Cache cache{options(Policy::require_hit)};
    remove_images();
    Function f = wrapped(cache);
    EXPECT_THROW(static_cast<void>(call(f, 16)), Exception);
}

TEST_F(PreloadByName, DoesNothingWhereNothingMayBeReplayedOrIsThere)
{
    record({16});
    for (const Policy policy : {Policy::off, Policy::refresh}) {
        Cache cache{options(policy)};
        preload_by_name(cache, "f", device);
        EXPECT_FALSE(loads(cache, std::chrono::milliseconds{30}));
    }
    Cache cache{options()};
    preload_by_name(cache, "other", device);
    EXPECT_FALSE(loads(cache, std::chrono::milliseconds{30}));
    EXPECT_THROW(preload_by_name(cache, "../f", device), Exception);
}

TEST_F(PreloadByName, LeavesDamageToTheCall)
{
    record({16});
    remove_images();
    Cache cache{options()};
    preload_by_name(cache, "f", device);
    EXPECT_FALSE(loads(cache, std::chrono::milliseconds{50}));
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
    Function f = wrapped(cache);
    EXPECT_EQ(call(f, 16), Outcome::recorded);
    EXPECT_EQ(call(f, 16), Outcome::replayed);
}

TEST_F(PreloadByName, MayBeAskedForAtAnyTimeAndEndsWithItsCache)
{
    record({16});
    for (int i = 0; i < 20; ++i) {
        Cache cache{options()};
        for (int again = 0; again < 3; ++again) preload_by_name(cache, "f", device);
        Function f = wrapped(cache);
        if (i % 2 == 0) {
            EXPECT_EQ(call(f, 16), Outcome::replayed);
        }
    }
}

} // namespace
} // namespace warmgraph::test::preload_by_name_test
