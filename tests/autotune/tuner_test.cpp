// Tests the tuner on a device: a cold start measures, a warm start does not, and a configuration with wrong results is
// never used.
#include <thread>

#include "tuning_fixture.hpp"

namespace warmgraph::test::tuner_test {
namespace {

TEST_F(TuningTest, ColdItTimesAndWarmItDoesNot)
{
    TuningReport cold;
    {
        Cache cache{options()};
        Tuner tuner = tuner_of(cache);
        cold = tuner.tune(kernel()).report();
        EXPECT_EQ(cold.outcome, TuningOutcome::tuned) << cold.reason;
        EXPECT_EQ(cold.reason, "no stored configuration");
        EXPECT_EQ(cold.config, (TunedConfig{{"WORK", 1}})) << "the default does 64 times as much";
        EXPECT_GT(cold.default_ms, cold.best_ms);
        EXPECT_EQ(cold.timings.size(), 3U);
        EXPECT_EQ(tuner.statistics().tuned, 1U);
        EXPECT_EQ(tuner.tune(kernel()).report().config, cold.config);
        EXPECT_EQ(tuner.statistics().tuned, 1U) << "once in a process";
    }
    Cache cache{options()};
    Tuner tuner = tuner_of(cache, {.validation = TuningValidation::at_first_run});
    m_works = 0;
    const TuningReport warm = tuner.tune(kernel()).report();
    EXPECT_EQ(warm.outcome, TuningOutcome::stored) << warm.reason;
    EXPECT_EQ(warm.config, cold.config);
    EXPECT_EQ(warm.reason, "");
    EXPECT_EQ(m_works, 0) << "not even memory is made";
    const TuningStatistics statistics = tuner.statistics();
    EXPECT_EQ(statistics.hits, 1U);
    EXPECT_EQ(statistics.tuned, 0U);
    EXPECT_DOUBLE_EQ(statistics.saved_ms, cold.search_ms);
}

TEST_F(TuningTest, WhatWasCompiledForTheDefaultAndTheWinnerIsKept)
{
    m_kernel.candidates.push_back({{"WORK", 32}});
    Cache cache{options()};
    EXPECT_EQ(tuner_of(cache).tune(kernel()).report().outcome, TuningOutcome::tuned);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::compiled).made, 4U);
    EXPECT_EQ(files(".compiled").size(), 2U);
    Cache served{options(Policy::no_compile)};
    EXPECT_EQ(tuner_of(served).tune(kernel()).report().outcome, TuningOutcome::stored) << "its winner is proven";
    EXPECT_EQ(served.statistics().of(ArtifactKind::compiled).hits, 2U);
    EXPECT_EQ(served.statistics().of(ArtifactKind::compiled).refused, 0U);
}

TEST_F(TuningTest, NoCompileTunesNothing)
{
    const TuningReport report = tune({}, Policy::no_compile);
    EXPECT_EQ(report.outcome, TuningOutcome::untuned);
    EXPECT_THAT(report.reason, HasSubstr("policy no_compile"));
    EXPECT_EQ(tune().outcome, TuningOutcome::tuned);
    std::filesystem::remove_all(dir.path() / "cache" / "compiled");
    EXPECT_EQ(thrown_by([&] { static_cast<void>(tune({}, Policy::no_compile)); })->code(), ErrorCode::miss_forbidden);
    EXPECT_EQ(tune({.validation = TuningValidation::at_first_run}).outcome, TuningOutcome::stored)
        << "that it could not be proven says nothing about it";
}

// The times depend on the machine. But the choice must be the fastest of the measured configurations.
TEST_F(TuningTest, ByTheMachinesClockTheFastestIsChosen)
{
    Cache cache{options()};
    const TuningReport report = cache.tuner(device, {.min_gain = 0}).tune(kernel()).report();
    EXPECT_EQ(report.outcome, TuningOutcome::tuned);
    for (const TuningTiming& timing : report.timings) {
        EXPECT_GT(timing.ms, 0);
        EXPECT_GE(timing.rounds, 2U);
        EXPECT_LE(report.best_ms, timing.ms);
    }
}

TEST_F(TuningTest, CommentsAndIncludePathsDoNotCount)
{
    EXPECT_EQ(tune().outcome, TuningOutcome::tuned);
    m_kernel.source = "// built in /home/ann/0x7f\n" + m_kernel.source + "/* the end */\n";
    m_kernel.options = "-I /somewhere/else -I/and/there";
    EXPECT_EQ(tune().outcome, TuningOutcome::stored);
}

TEST_F(TuningTest, WhatItWasTunedForCounts)
{
    EXPECT_EQ(tune().outcome, TuningOutcome::tuned);
    const TunableKernel before = m_kernel;
    const auto expect_miss = [&](const char* what) {
        const TuningReport report = tune();
        EXPECT_EQ(report.outcome, TuningOutcome::tuned) << what;
        m_kernel = before;
    };
    m_kernel.source += "\n__kernel void more() {}\n";
    expect_miss("code");
    m_kernel.options = "-D OTHER=1";
    expect_miss("options");
    m_kernel.problem["count"] = 77;
    expect_miss("sizes");
    m_kernel.name = "another";
    expect_miss("name");
    m_kernel.candidates.push_back({{"WORK", 32}});
    EXPECT_THAT(tune().reason, HasSubstr("other candidates"));
    m_kernel = before;
    EXPECT_THAT(tune().reason, HasSubstr("other candidates")) << "which had replaced them";
    EXPECT_EQ(tune().outcome, TuningOutcome::stored);
}

TEST_F(TuningTest, ADamagedFileIsAMissAndIsReplaced)
{
    EXPECT_EQ(tune().outcome, TuningOutcome::tuned);
    ASSERT_EQ(files(".best_config").size(), 1U);
    auto bytes = file_bytes(files(".best_config")[0]);
    bytes[bytes.size() / 2] ^= 1;
    write_file(files(".best_config")[0], bytes);
    Cache cache{options()};
    Tuner tuner = tuner_of(cache);
    const TuningReport report = tuner.tune(kernel()).report();
    EXPECT_EQ(report.outcome, TuningOutcome::tuned);
    EXPECT_THAT(report.reason, HasSubstr("cannot be used"));
    EXPECT_EQ(tuner.statistics().faults, 1U);
    EXPECT_EQ(tune().outcome, TuningOutcome::stored);
}

TEST_F(TuningTest, CandidatesThatAreWrongOrDoNotLaunchOrDoNotBuildAreOut)
{
    m_kernel.source = R"(
#if WORK == 3
#error not this one
#endif
__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void heavy(__global const float* x, __global float* y)
{
    const size_t i = get_global_id(0);
    float sum = 0;
    for (int n = 0; n < 64; ++n) sum += x[i] + n * 1e-9f;
    if (WORK != 4) y[i] = WORK == 1 ? x[i] : sum;
})";
    m_kernel.candidates = {{{"WORK", 64}}, {{"WORK", 4}}, {{"WORK", 1}}, {{"WORK", 2}}, {{"WORK", 3}}};
    const TuningReport report = tune();
    EXPECT_EQ(report.config, (TunedConfig{{"WORK", 64}}));
    ASSERT_EQ(report.timings.size(), 5U);
    EXPECT_THAT(report.timings[2].failed, HasSubstr("results differ from the default's: output 0: element"));
    EXPECT_THAT(report.timings[3].failed, HasSubstr("launch")) << "the fixture's launch throws for 2";
    EXPECT_THAT(report.timings[4].failed, HasSubstr("not this one"));
    EXPECT_THAT(report.timings[1].failed, HasSubstr("results")) << "it writes nothing, right behind the default";
}

TEST_F(TuningTest, TheDefaultsOwnErrorIsThrown)
{
    m_kernel.source = "this is no kernel";
    Cache cache{options()};
    Tuner tuner = tuner_of(cache);
    EXPECT_TRUE(failed_with(thrown_by([&] { static_cast<void>(tuner.tune(kernel())); }), ErrorCode::compile_failed,
                            "kernel 'heavy': the default configuration 'WORK=64'"));
    EXPECT_TRUE(files(".best_config").empty());
}

TEST_F(TuningTest, PoliciesSayWhatMayBeDone)
{
    const auto outcome = [&](Policy policy) { return tune({}, policy).outcome; };
    static_cast<void>(Cache{options()}); // makes the cache folder
    EXPECT_EQ(outcome(Policy::off), TuningOutcome::untuned);
    EXPECT_THAT(tune({}, Policy::read_only).reason, HasSubstr("policy read_only"));
    EXPECT_EQ(tune({}, Policy::read_only).config, m_kernel.candidates[0]) << "the default";
    Cache strict{options(Policy::require_hit)};
    Tuner tuner = tuner_of(strict);
    EXPECT_TRUE(failed_with(thrown_by([&] { static_cast<void>(tuner.tune(kernel())); }), ErrorCode::miss_forbidden));
    EXPECT_TRUE(files(".best_config").empty());

    EXPECT_EQ(outcome(Policy::read_write), TuningOutcome::tuned);
    for (const Policy policy : {Policy::read_write, Policy::read_only, Policy::require_hit})
        EXPECT_EQ(outcome(policy), TuningOutcome::stored);
    EXPECT_EQ(outcome(Policy::refresh), TuningOutcome::tuned);
}

TEST_F(TuningTest, DescentFindsWhatNoCandidateIs)
{
    m_kernel.candidates = {{{"WORK", 64}}, {{"WORK", 16}}};
    m_kernel.ranges = {powers_of_two("WORK", 1, 64)};
    m_kernel.admits = [](const TunedConfig& config) { return config.at("WORK") != 2; }; // a launch of WORK == 2 throws
    const TuningReport enumerated = tune();
    EXPECT_EQ(enumerated.config, (TunedConfig{{"WORK", 16}}));
    const TuningReport descended = tune({.search = TuningSearch::coordinate_descent});
    EXPECT_EQ(descended.reason, "coordinate descent starts from the stored winner");
    EXPECT_EQ(descended.found_by, "coordinate_descent");
    EXPECT_LT(descended.config.at("WORK"), 16);
    EXPECT_GT(descended.search_ms, enumerated.search_ms) << "with what was spent before";
    EXPECT_EQ(tune({.search = TuningSearch::coordinate_descent}).outcome, TuningOutcome::stored);
    // Now the kernel's ranges are narrower, and the winner that was stored is outside.
    m_kernel.ranges = {powers_of_two("WORK", 16, 64)};
    const TuningReport narrower = tune({.search = TuningSearch::coordinate_descent});
    EXPECT_EQ(narrower.outcome, TuningOutcome::tuned);
    EXPECT_THAT(narrower.reason, HasSubstr("outside the declared range"));
}

// A descent through ranges needs measurements, which these policies do not allow. So the best candidate that is stored
// is used instead.
TEST_F(TuningTest, WhereNothingMayBeTunedDescentsStartIsUsed)
{
    const TuningReport enumerated = tune();
    m_kernel.ranges = {powers_of_two("WORK", 4, 64)};
    for (const Policy policy : {Policy::read_only, Policy::require_hit}) {
        const TuningReport report = tune({.search = TuningSearch::coordinate_descent}, policy);
        EXPECT_EQ(report.outcome, TuningOutcome::stored);
        EXPECT_EQ(report.config, enumerated.config);
        EXPECT_THAT(report.reason, HasSubstr("coordinate descent would start from it"));
    }
}

TEST_F(TuningTest, AKernelIsTunedOnceHoweverManyThreadsAsk)
{
    Cache cache{options()};
    Tuner tuner = tuner_of(cache);
    std::vector<TunedConfig> found(4);
    {
        std::vector<std::jthread> threads;
        for (TunedConfig& config : found)
            threads.emplace_back([this, &tuner, &config] {
                const Tuned tuned = tuner.tune(kernel());
                tuned.validate();
                config = tuned.config();
            });
    }
    for (const TunedConfig& config : found) EXPECT_EQ(config, (TunedConfig{{"WORK", 1}}));
    EXPECT_EQ(tuner.statistics().tuned, 1U);
    EXPECT_EQ(m_works, 1);
}

TEST_F(TuningTest, AWinnerOfDescentIsNotUsedWithoutIt)
{
    m_kernel.ranges = {powers_of_two("WORK", 4, 64)};
    EXPECT_EQ(tune({.search = TuningSearch::coordinate_descent}).outcome, TuningOutcome::tuned);
    EXPECT_THAT(tune().reason, HasSubstr("coordinate descent found it"));
}

TEST_F(TuningTest, AStoredWinnerThatIsWrongHereGivesWayToTheDefault)
{
    EXPECT_EQ(tune().config, (TunedConfig{{"WORK", 1}}));
    m_spoils = 1;
    {
        Cache cache{options()};
        Tuner tuner = tuner_of(cache);
        const TuningReport report = tuner.tune(kernel()).report();
        EXPECT_EQ(report.outcome, TuningOutcome::untuned);
        EXPECT_EQ(report.config, m_kernel.candidates[0]);
        EXPECT_THAT(report.reason, HasSubstr("rejected"));
        EXPECT_EQ(tuner.statistics().rejected, 1U);
        EXPECT_TRUE(files(".best_config").empty()) << "nobody is to meet it again";
    }
    const TuningReport next = tune();
    EXPECT_EQ(next.outcome, TuningOutcome::tuned);
    EXPECT_NE(next.config, (TunedConfig{{"WORK", 1}}));
}

TEST_F(TuningTest, AWinnerThatIsValidatedLaterIsRejectedThen)
{
    static_cast<void>(tune());
    m_spoils = 1;
    Cache cache{options()};
    Tuner tuner = tuner_of(cache, {.validation = TuningValidation::at_first_run});
    const Tuned tuned = tuner.tune(kernel());
    EXPECT_EQ(tuned.report().outcome, TuningOutcome::stored);
    for (int i = 0; i < 2; ++i) {
        EXPECT_TRUE(failed_with(thrown_by([&] { tuned.validate(); }), ErrorCode::verification_failed,
                                "'WORK=1' of kernel 'heavy' does not give the results of the default 'WORK=64'"));
    }
    EXPECT_EQ(tuner.statistics().rejected, 1U);
    const Tuned after = tuner.tune(kernel());
    EXPECT_EQ(after.config(), m_kernel.candidates[0]);
    after.validate();
}

TEST_F(TuningTest, ValidatingWhatIsRightIsDoneOnce)
{
    static_cast<void>(tune());
    Cache cache{options()};
    const Tuned tuned = tuner_of(cache, {.validation = TuningValidation::at_first_run}).tune(kernel());
    m_works = 0;
    tuned.validate();
    EXPECT_EQ(m_works, 1);
    tuned.validate();
    EXPECT_EQ(m_works, 1);
}

TEST_F(TuningTest, RanksAgreeOnTheLastWrite)
{
    Cache first{options()}, second{options(Policy::refresh)};
    Tuner ours = tuner_of(first), theirs = tuner_of(second);
    EXPECT_EQ(ours.tune(kernel()).config().at("WORK"), 1);
    EXPECT_THAT(ours.reload(), ElementsAre());
    m_spoils = 1; // stands for another rank, which finds another winner and writes last
    const TunedConfig other = theirs.tune(kernel()).config();
    EXPECT_NE(other.at("WORK"), 1);
    m_spoils = 0;
    EXPECT_THAT(ours.reload(), ElementsAre("heavy"));
    EXPECT_EQ(ours.tune(kernel()).config(), other);
    EXPECT_THAT(ours.reload(), ElementsAre());
    // Damages a file, which must not change the result.
    write_file(files(".best_config")[0], {'{'});
    EXPECT_THAT(ours.reload(), ElementsAre());
    EXPECT_EQ(ours.tune(kernel()).config(), other);
}

TEST_F(TuningTest, DeclarationsThatMakeNoSenseAreRefused)
{
    Cache cache{options()};
    Tuner tuner = tuner_of(cache);
    const TunableKernel good = m_kernel;
    const auto refused = [&](const char* text) {
        EXPECT_TRUE(
            failed_with(thrown_by([&] { static_cast<void>(tuner.tune(kernel())); }), ErrorCode::invalid_argument, text))
            << text;
        m_kernel = good;
    };
    m_kernel.candidates.clear();
    refused("0 candidates");
    m_kernel.name = "../x";
    refused("name");
    m_kernel.relative_tolerance = -1;
    refused("tolerance");
    m_kernel.ranges = {{"OTHER", {1}}};
    refused("OTHER");
    EXPECT_TRUE(thrown_by([&] { static_cast<void>(cache.tuner(device, {.rounds = 0})); }));
    EXPECT_TRUE(thrown_by([&] { static_cast<void>(cache.tuner(device, {.min_gain = 1})); }));
    EXPECT_TRUE(thrown_by([] { static_cast<void>(powers_of_two("A", 0, 4)); }));
    EXPECT_THAT(powers_of_two("A", 3, 13).values, ElementsAre(3, 6, 12));
}

} // namespace
} // namespace warmgraph::test::tuner_test
