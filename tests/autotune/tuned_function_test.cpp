// Tests functions whose programs were built with a tuned configuration.
#include "tuning_fixture.hpp"

namespace warmgraph::test::tuned_function_test {
namespace {

class TunedFunctionTest : public TuningTest {
protected:
    /// A start in a new process: it asks for the configuration, makes its program with it, wraps the function, and
    /// calls it.
    struct Start {
        Start(TunedFunctionTest& test, const TuningOptions& how = {.validation = TuningValidation::at_first_run})
            : cache(test.options()),
              tuner(test.tuner_of(cache, how)),
              tuned(tuner.tune(test.kernel())),
              program(test.device.program("heavy", k_source, tuned.definitions())),
              x(test.floats(1, k_items)),
              y(test.floats(0, k_items))
        {
            Spec spec = x_to_y(f32, k_items, {program});
            spec.tuned = {tuned};
            function = std::make_unique<Function>(cache.wrap("heavy", test.device, spec, [this](Recorder& r) {
                r.stream().launch(program, "heavy", Launch{.grid = {k_items / 16, 1, 1}, .block = {16, 1, 1}}, r["x"],
                                  r["y"], 1);
            }));
        }
        Outcome call() { return (*function)({{"x", x}, {"y", y}}); }

        Cache cache;
        Tuner tuner;
        Tuned tuned;
        Program program;
        Buffer x, y;
        std::unique_ptr<Function> function;
    };
};

TEST_F(TunedFunctionTest, AWarmStartTimesNothingBuildsNothingAndValidatesNothing)
{
    {
        Start cold{*this};
        EXPECT_EQ(cold.tuned.report().outcome, TuningOutcome::tuned);
        EXPECT_EQ(cold.call(), Outcome::recorded) << cold.function->report().reason;
    }
    m_works = 0;
    Start warm{*this};
    EXPECT_EQ(warm.call(), Outcome::replayed) << warm.function->report().reason;
    EXPECT_EQ(m_works, 0);
    EXPECT_EQ(read(warm.y), read(warm.x));
}

TEST_F(TunedFunctionTest, WhereItRunsAsCodeTheWinnerIsValidatedFirst)
{
    static_cast<void>(tune());
    Start start{*this};
    m_works = 0;
    EXPECT_EQ(start.call(), Outcome::recorded) << start.function->report().reason;
    EXPECT_EQ(m_works, 1);
    EXPECT_EQ(start.call(), Outcome::replayed);
    EXPECT_EQ(m_works, 1);
}

TEST_F(TunedFunctionTest, AWrongWinnerNeverRuns)
{
    static_cast<void>(tune());
    m_spoils = 1;
    Start start{*this};
    EXPECT_TRUE(failed_with(thrown_by([&] { start.call(); }), ErrorCode::verification_failed));
    device.synchronize();
    EXPECT_EQ(read(start.y), read(floats(0, k_items))) << "the function did not run";
    EXPECT_TRUE(entries().empty());
    const Start again{*this};
    EXPECT_NE(again.tuned.config().at("WORK"), 1);
}

TEST_F(TunedFunctionTest, AnotherConfigurationIsAnotherEntryAndExplainSaysSo)
{
    {
        Start first{*this};
        EXPECT_EQ(first.call(), Outcome::recorded);
    }
    EXPECT_EQ(entries().size(), 1U);
    m_spoils = 1; // now another configuration wins
    std::filesystem::remove(files(".best_config").at(0));
    Start second{*this};
    ASSERT_NE(second.tuned.config().at("WORK"), 1);
    EXPECT_EQ(second.call(), Outcome::recorded);
    EXPECT_EQ(entries().size(), 2U);
    const auto misses = second.function->misses();
    ASSERT_FALSE(misses.empty());
    const auto& differences = misses.front().differences;
    const auto tuned = std::ranges::find(differences, "code.tuned.heavy", &MissedFact::fact);
    ASSERT_NE(tuned, differences.end());
    EXPECT_EQ(tuned->recorded, "WORK=1");
    EXPECT_EQ(tuned->now, "WORK=" + std::to_string(second.tuned.config().at("WORK")));
}

TEST_F(TunedFunctionTest, ValidationWithinAWrappedFunctionIsRefused)
{
    static_cast<void>(tune());
    Cache cache{options()};
    const Tuned tuned = tuner_of(cache, {.validation = TuningValidation::at_first_run}).tune(kernel());
    const Buffer x = floats(1), y = floats(0);
    Function called = cache.wrap("called", device, vector_spec(), [&](Recorder&) { tuned.validate(); });
    EXPECT_THAT(message_of(thrown_by([&] { called({{"x", x}, {"y", y}}); })), HasSubstr("Spec::tuned"));
}

} // namespace
} // namespace warmgraph::test::tuned_function_test
