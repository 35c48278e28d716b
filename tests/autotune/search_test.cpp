// Tests the search on a workbench with faults: its timer jumps, and configurations do not build, do not launch, or give
// wrong results.
#include <cmath>
#include <limits>
#include <map>
#include <random>

#include "expect_error.hpp"
#include "warmgraph/autotune/search.hpp"

namespace warmgraph::autotune::search_test {
namespace {

/// A workbench on which a configuration takes the time `cost`, changed by `noise`.
class FaultyBench final : public Workbench {
public:
    Result<void> prepare(const Configuration& config) override
    {
        ++prepared[config];
        if (const auto fault = does_not_run.find(config); fault != does_not_run.end())
            return fail(ErrorCode::driver_failed, "{}", fault->second);
        return {};
    }
    Result<std::optional<std::string>> difference(const Configuration& config) override
    {
        if (wrong.contains(config)) return "output 0: element 3 is 7, expected 8";
        return std::nullopt;
    }
    Result<double> time(const Configuration& config) override
    {
        ++timed[config];
        return noise(cost(config));
    }

    std::function<double(const Configuration&)> cost;
    std::function<double(double)> noise = [](double ms) { return ms; };
    std::map<Configuration, std::string> does_not_run;
    std::set<Configuration> wrong;
    std::map<Configuration, int> prepared, timed;
};

Configuration tile(std::int64_t value) { return {{"TILE", value}}; }

class Searched : public testing::Test {
protected:
    Searched()
    {
        m_bench.cost = [](const Configuration& config) {
            return 1.0 + std::abs(std::log2(static_cast<double>(config.at("TILE"))) - 5); // TILE 32 is fastest
        };
    }
    [[nodiscard]] Winner enumerated()
    {
        auto winner = enumerate(m_bench, m_space, m_rules, system_clock());
        EXPECT_TRUE(succeeded(winner));
        return winner ? *winner : Winner{tile(0)};
    }
    [[nodiscard]] Winner descended(Winner start)
    {
        auto winner = descend(m_bench, m_space, m_rules, system_clock(), std::move(start));
        EXPECT_TRUE(succeeded(winner));
        return winner ? *winner : Winner{tile(0)};
    }

    FaultyBench m_bench;
    Space m_space{{tile(8), tile(4), tile(16)}, {{"TILE", {1, 2, 4, 8, 16, 32, 64, 128}}}};
    SearchRules m_rules;
};

TEST_F(Searched, TheFastestCandidateWinsAndAllTimingsAreKept)
{
    const Winner winner = enumerated();
    EXPECT_EQ(winner.config, tile(16));
    EXPECT_EQ(winner.found_by, FoundBy::enumeration);
    ASSERT_EQ(winner.timings.size(), 3U);
    EXPECT_EQ(winner.timings[0].config, tile(8)) << "the default first";
    EXPECT_DOUBLE_EQ(winner.timings[0].ms, 3.0);
    EXPECT_DOUBLE_EQ(winner.timings[2].ms, 2.0);
    EXPECT_EQ(winner.timings[2].rounds, 7U);
}

TEST_F(Searched, WhatIsFarBehindIsTimedTwice)
{
    static_cast<void>(enumerated());
    EXPECT_EQ(m_bench.timed[tile(4)], 2) << "4 ms against 2 ms";
    EXPECT_EQ(m_bench.timed[tile(16)], 7);
    EXPECT_EQ(m_bench.timed[tile(8)], 7) << "the default always: the gain is over it";
}

TEST_F(Searched, OneSlowMomentDoesNotPutTheBestOut)
{
    for (int slow = 1; slow <= 12; ++slow) { // each of the first measurements is slow in turn
        int measured = 0;
        m_bench.noise = [&](double ms) { return ++measured == slow ? 20 * ms : ms; };
        EXPECT_EQ(enumerated().config, tile(16)) << "measurement " << slow;
    }
}

TEST_F(Searched, ATimerThatJumpsDoesNotChooseTheWinner)
{
    std::mt19937 random(7);
    m_bench.noise = [&random](double ms) {
        std::uniform_real_distribution<double> jitter(0.95, 1.05);
        const bool jumps = random() % 7 == 0; // the time jumps up or down
        return ms * jitter(random) * (jumps ? (random() % 2 == 0 ? 8 : 0.1) : 1);
    };
    m_rules.rounds = 31;
    m_rules.drop_above = 1000; // so high that the first round drops nothing
    for (int i = 0; i < 20; ++i) ASSERT_EQ(enumerated().config, tile(16)) << "search " << i;
}

TEST_F(Searched, TheDefaultStaysWhereTheGainIsWithinTheNoise)
{
    m_bench.cost = [](const Configuration& config) { return config == tile(8) ? 1.0 : 0.98; };
    EXPECT_EQ(enumerated().config, tile(8));
    m_rules.min_gain = 0.01;
    EXPECT_EQ(enumerated().config, tile(4));
}

TEST_F(Searched, WhatDoesNotRunOrGivesOtherResultsNeverWins)
{
    m_bench.does_not_run[tile(16)] = "CL_INVALID_WORK_GROUP_SIZE";
    m_bench.cost = [](const Configuration& config) { return config == tile(8) ? 5.0 : 1.0; };
    m_bench.wrong.insert(tile(4));
    const Winner winner = enumerated();
    EXPECT_EQ(winner.config, tile(8));
    EXPECT_THAT(winner.timings[1].failed, HasSubstr("differ from the default's: output 0: element 3"));
    EXPECT_EQ(winner.timings[2].failed, "CL_INVALID_WORK_GROUP_SIZE");
    EXPECT_EQ(m_bench.timed[tile(4)], 0) << "its time does not count, whatever it is";
}

TEST_F(Searched, ATimerThatGivesNoNumberIsAFailure)
{
    for (const double broken : {0.0, -1.0, std::numeric_limits<double>::quiet_NaN()}) {
        m_bench.cost = [broken](const Configuration& config) { return config == tile(16) ? broken : 1.0; };
        EXPECT_EQ(enumerated().config, tile(8));
    }
    m_bench.cost = [](const Configuration&) { return -1.0; };
    EXPECT_TRUE(failed_with(enumerate(m_bench, m_space, m_rules, system_clock()), ErrorCode::driver_failed, "-1 ms"));
}

TEST_F(Searched, ADefaultThatDoesNotRunIsTheCallersError)
{
    m_bench.does_not_run[tile(8)] = "build failed";
    EXPECT_TRUE(failed_with(enumerate(m_bench, m_space, m_rules, system_clock()), ErrorCode::driver_failed,
                            "the default configuration 'TILE=8': build failed"));
}

TEST_F(Searched, DescentGoesOnFromTheBestCandidateToWhatNoneOfThemIs)
{
    const Winner winner = descended(enumerated());
    EXPECT_EQ(winner.config, tile(32));
    EXPECT_EQ(winner.found_by, FoundBy::coordinate_descent);
    EXPECT_EQ(m_bench.prepared[tile(64)], 1) << "it looked past the best";
    EXPECT_EQ(m_bench.prepared[tile(128)], 0) << "and not further";
    EXPECT_EQ(winner.timings.size(), 5U);
    EXPECT_EQ(winner.timings[0].config, tile(8));
    ASSERT_NE(timing_of(winner.timings, tile(32)), nullptr);
    EXPECT_DOUBLE_EQ(timing_of(winner.timings, tile(32))->ms, 1.0);
}

TEST_F(Searched, DescentStartsAtTheStoredWinnerWithoutTimingTheCandidatesAgain)
{
    const Winner stored = enumerated();
    m_bench.timed.clear();
    EXPECT_EQ(descended(stored).config, tile(32));
    EXPECT_EQ(m_bench.timed[tile(4)], 0);
    EXPECT_EQ(m_bench.timed[tile(8)], 7) << "as a neighbour alone";
}

TEST_F(Searched, DescentTakesOneParameterAfterTheOther)
{
    m_space = {{{{"A", 1}, {"B", 1}}}, {{"A", {1, 2, 4, 8}}, {"B", {1, 2, 4, 8}}}};
    m_bench.cost = [](const Configuration& config) {
        return 1.0 + std::abs(static_cast<double>(config.at("A")) - 4) +
               std::abs(static_cast<double>(config.at("B")) - 2);
    };
    EXPECT_EQ(descended(enumerated()).config, (Configuration{{"A", 4}, {"B", 2}}));
}

TEST_F(Searched, DescentDoesNotStepOntoWhatIsWrongOrNotAdmitted)
{
    m_bench.wrong.insert(tile(32));
    EXPECT_EQ(descended(enumerated()).config, tile(16));
    m_bench.wrong.clear();
    m_space.admits = [](const Configuration& config) { return config != tile(32); };
    EXPECT_EQ(descended(enumerated()).config, tile(16));
}

TEST_F(Searched, DescentEnds)
{
    int calls = 0;
    m_bench.cost = [&calls](const Configuration&) { return std::pow(0.5, ++calls); }; // shorter each time
    m_rules.most_steps = 3;
    static_cast<void>(descended(Winner{tile(8), FoundBy::enumeration, {{tile(8), 1, 1}}, 1}));
    EXPECT_LE(m_bench.prepared.size(), 5U);
}

TEST_F(Searched, AStartThatDoesNotRunHereGivesWayToTheDefault)
{
    m_bench.does_not_run[tile(16)] = "too large";
    Winner start{tile(16), FoundBy::enumeration, {{tile(8), 3, 7}, {tile(16), 2, 7}}, 1};
    const Winner winner = descended(start);
    EXPECT_EQ(winner.config, tile(8)) << "4 is slower, and 16 does not run";
}

} // namespace
} // namespace warmgraph::autotune::search_test
