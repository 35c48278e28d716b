// The option verify_on_load: a restored graph is compared with the function itself before it is used.
#include "facade_fixture.hpp"

namespace warmgraph::test::verify_on_load_test {
namespace {

class VerifyOnLoad : public FacadeTest {
protected:
    [[nodiscard]] CacheOptions checking(Policy policy = Policy::read_write) const
    {
        CacheOptions result = options(policy);
        result.verify_on_load = true;
        return result;
    }
    /// The function y = x + `amount`. No guard sees `amount`, so the function can change although its version stays the
    /// same.
    [[nodiscard]] Function wrap(Cache& cache, std::int32_t amount)
    {
        Spec spec = vector_spec();
        spec.version = "1";
        return cache.wrap("f", device, spec, [this, amount](Recorder& r) {
            ++runs;
            r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], amount);
        });
    }
    Outcome call(Function& f, float expected_first)
    {
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        const Outcome outcome = f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(expected_first)));
        return outcome;
    }
    void record(std::int32_t amount)
    {
        Cache cache{options()};
        Function f = wrap(cache, amount);
        ASSERT_EQ(call(f, static_cast<float>(amount)), Outcome::recorded);
        runs = 0;
    }
    int runs = 0;
};

TEST_F(VerifyOnLoad, AcceptsAnEntryThatDoesWhatTheFunctionDoes)
{
    record(1);
    Cache cache{checking()};
    Function f = wrap(cache, 1);
    EXPECT_EQ(call(f, 1), Outcome::replayed);
    EXPECT_EQ(runs, 1) << "it was compared with what the function itself left";
    runs = 0;
    EXPECT_EQ(call(f, 1), Outcome::replayed);
    EXPECT_EQ(runs, 0) << "once";
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(VerifyOnLoad, RemovesAWrongEntryAndRecordsTheFunctionAsItIs)
{
    record(1);
    {
        Cache trusting{options(Policy::require_hit)};
        Function f = wrap(trusting, 2);
        EXPECT_EQ(call(f, 1), Outcome::replayed) << "a version that was not raised is believed";
    }
    Cache cache{checking()};
    Function f = wrap(cache, 2);
    EXPECT_EQ(call(f, 2), Outcome::recorded);
    EXPECT_EQ(cache.statistics().cache_faults, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 0U);
    EXPECT_THAT(f.report().reason, HasSubstr("the restored graph leaves 64 elements of 'y' outside"));
    Cache next{checking(Policy::require_hit)};
    Function again = wrap(next, 2);
    EXPECT_EQ(call(again, 2), Outcome::replayed) << "the right one took its place";
}

TEST_F(VerifyOnLoad, RunsTheFunctionWhereNothingMayBeRecorded)
{
    record(1);
    Cache cache{checking(Policy::read_only)};
    Function f = wrap(cache, 2);
    EXPECT_EQ(call(f, 2), Outcome::eager);
    EXPECT_EQ(cache.statistics().cache_faults, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 0U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).refused, 0U);
    EXPECT_EQ(runs, 2) << "the answer, and the capture that it is compared through";
    EXPECT_EQ(call(f, 2), Outcome::eager);
    EXPECT_EQ(runs, 3) << "what was found wrong is not asked again";
}

TEST_F(VerifyOnLoad, ChecksWhatWasOpenedAheadAtItsFirstUse)
{
    record(1);
    {
        Cache cache{checking(Policy::require_hit)};
        Function f = wrap(cache, 1);
        EXPECT_EQ(cache.preload({.wait = PreloadWait::all}).progress().loaded, 1U);
        EXPECT_EQ(runs, 0);
        EXPECT_EQ(call(f, 1), Outcome::replayed);
        EXPECT_GE(runs, 1);
    }
    Cache cache{checking()};
    Function f = wrap(cache, 2);
    EXPECT_EQ(cache.preload({.wait = PreloadWait::all}).progress().loaded, 1U);
    EXPECT_EQ(call(f, 2), Outcome::recorded);
    EXPECT_EQ(cache.statistics().cache_faults, 1U);
    EXPECT_THAT(f.report().reason, HasSubstr("the restored graph leaves 64 elements of 'y' outside"));
}

TEST_F(VerifyOnLoad, LeavesStatesAsTheyWere)
{
    const Buffer sums = floats(0), ones = device.upload<float>(std::vector<float>(k_count, 1.0f));
    Spec spec;
    spec.inputs = {input("x", f32, {k_count})};
    spec.states = {state("s", sums)};
    spec.code = {program};
    spec.version = "1";
    const Callable accumulate = [this](Recorder& r) {
        r.stream().launch(program, "accumulate", k_launch, r["s"], r["x"]);
    };
    for (int round = 1; round <= 2; ++round) {
        Cache cache{checking()};
        Function f = cache.wrap("accumulate", device, spec, accumulate);
        EXPECT_EQ(f({{"x", ones}}), round == 1 ? Outcome::recorded : Outcome::replayed);
        EXPECT_EQ(read(sums), read(floats(static_cast<float>(round))));
    }
}

class VerifyFromOutside : public VerifyOnLoad {
protected:
    ~VerifyFromOutside() override { ::unsetenv("WARMGRAPH_VERIFY"); }
    /// Makes five calls. Returns for each call how often the function itself ran.
    std::vector<int> runs_of_calls(const char* variable, const CacheOptions& with)
    {
        device.synchronize(); // the driver's threads must not read the environment while it changes
        ::setenv("WARMGRAPH_VERIFY", variable, 1);
        Cache cache{with};
        Function f = wrap(cache, 1);
        std::vector<int> result;
        for (int i = 0; i < 5; ++i) {
            runs = 0;
            EXPECT_EQ(call(f, 1), Outcome::replayed);
            result.push_back(runs);
        }
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).hits, 1U);
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 0U);
        return result;
    }
};

TEST_F(VerifyFromOutside, TheEnvironmentWinsOverTheProgram)
{
    record(1);
    EXPECT_EQ(runs_of_calls("never", checking()), (std::vector{0, 0, 0, 0, 0}));
    EXPECT_EQ(runs_of_calls("", checking()), (std::vector{1, 0, 0, 0, 0}));
    EXPECT_EQ(runs_of_calls("first", options()), (std::vector{1, 0, 0, 0, 0}));
    EXPECT_EQ(runs_of_calls("1/2", options()), (std::vector{1, 0, 1, 0, 1}))
        << "and each second call of a loaded graph";
}

TEST_F(VerifyFromOutside, WhatItDoesNotKnowIsAnError)
{
    for (const char* text : {"always", "1/", "1/0", "1/x", "1/-2", "2/3", "1/2 "}) {
        device.synchronize();
        ::setenv("WARMGRAPH_VERIFY", text, 1);
        EXPECT_TRUE(failed_with(thrown_by([&] { Cache{options()}; }), ErrorCode::invalid_argument,
                                "expected never, first or 1/N"))
            << text;
    }
}

TEST_F(VerifyOnLoad, HasNothingToCompareALoadedFunctionWith)
{
    record(1);
    Cache cache{checking()};
    Spec spec = vector_spec();
    spec.version = "1";
    Function f = cache.load("f", device, spec);
    EXPECT_EQ(call(f, 1), Outcome::replayed);
}

} // namespace
} // namespace warmgraph::test::verify_on_load_test
