// What guards depend on and no argument tells: gathered when it is used, and what was true at the call is true of what is
// published.
#include "facade_fixture.hpp"

namespace warmgraph::test::facts_test {
namespace {

constexpr const char* k_variable = "WARMGRAPH_TEST_MODE";

class Facts : public FacadeTest {
protected:
    ~Facts() override
    {
        device.synchronize(); // the driver's threads read the environment
        ::unsetenv(k_variable);
    }
    void set_mode(const char* mode) const
    {
        device.synchronize();
        ::setenv(k_variable, mode, 1);
    }
    /// y = x + 1, or x + 2 where the mode is "b".
    [[nodiscard]] Function by_mode(Cache& cache)
    {
        Spec spec = vector_spec();
        spec.environment = {k_variable};
        return cache.wrap("f", device, spec, [this](Recorder& r) {
            ++runs;
            const std::string mode = std::getenv(k_variable);
            r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], std::int32_t{mode == "b" ? 2 : 1});
            if (!next_mode.empty() && runs == 2) ::setenv(k_variable, next_mode.c_str(), 1);
        });
    }
    Outcome call(Function& f, float expected_first)
    {
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        const Outcome outcome = f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(expected_first)));
        return outcome;
    }
    int runs = 0;
    std::string next_mode{}; ///< set while it is captured
};

TEST_F(Facts, ChangedSourceOrConfigurationOrVersionMissesWithTheReason)
{
    const Buffer x = floats(0), y = device.allocate(k_count * 4);
    const auto outcome_of = [&](const Spec& spec) {
        Cache cache{options()};
        Function f = cache.wrap("add_one", device, spec, [&spec](Recorder& r) {
            r.stream().launch(spec.code.front(), "add_one", k_launch, r["x"], r["y"]);
        });
        f({{"x", x}, {"y", y}});
        return f.report();
    };
    EXPECT_EQ(outcome_of(vector_spec()).outcome, Outcome::recorded);
    EXPECT_EQ(outcome_of(vector_spec()).outcome, Outcome::replayed);
    Spec configured = vector_spec();
    configured.config["dtype"] = "f32";
    EXPECT_THAT(outcome_of(configured).reason, testing::HasSubstr("config.dtype"));
    Spec other_code = vector_spec();
    other_code.code = {device.program("small", std::string{k_small_kernels} + "// changed\n")};
    EXPECT_THAT(outcome_of(other_code).reason, testing::HasSubstr("program.small"));
    Spec versioned = vector_spec();
    versioned.version = "2";
    EXPECT_THAT(outcome_of(versioned).reason, testing::HasSubstr("code."));
    device.synchronize(); // the driver's threads read the environment
    ::setenv("WARMGRAPH_TEST_GUARD", "a", 1);
    Spec with_environment = vector_spec();
    with_environment.environment = {"WARMGRAPH_TEST_GUARD"};
    EXPECT_EQ(outcome_of(with_environment).outcome, Outcome::recorded);
    device.synchronize(); // the driver's threads read the environment
    ::setenv("WARMGRAPH_TEST_GUARD", "b", 1);
    EXPECT_THAT(outcome_of(with_environment).reason, testing::HasSubstr("env.WARMGRAPH_TEST_GUARD"));
    device.synchronize(); // the driver's threads read the environment
    ::unsetenv("WARMGRAPH_TEST_GUARD");
}

TEST_F(Facts, AnEnvironmentVariableIsReadAtEveryCall)
{
    {
        Cache cache{options()};
        Function f = by_mode(cache);
        set_mode("a");
        EXPECT_EQ(call(f, 1), Outcome::recorded);
        EXPECT_EQ(call(f, 1), Outcome::replayed);
        set_mode("b");
        EXPECT_EQ(call(f, 2), Outcome::recorded) << "another variant, not a's graph";
        EXPECT_THAT(f.report().reason, testing::HasSubstr("env.WARMGRAPH_TEST_MODE"));
        EXPECT_EQ(call(f, 2), Outcome::replayed);
        set_mode("a");
        EXPECT_EQ(call(f, 1), Outcome::replayed) << "from disk";
    }
    EXPECT_EQ(entries().size(), 2U);
    for (const auto& [mode, expected] : {std::pair{"a", 1.0F}, std::pair{"b", 2.0F}}) { // a later process
        set_mode(mode);
        Cache cache{options(Policy::require_hit)};
        Function f = by_mode(cache);
        EXPECT_EQ(call(f, expected), Outcome::replayed) << mode;
    }
}

TEST_F(Facts, AVariableThatChangesWhileItIsRecordedKeepsTheRecordingFromBeingPublished)
{
    set_mode("a");
    Cache cache{options()};
    Function f = by_mode(cache);
    next_mode = "c"; // as "a" for the function, so that the captures agree
    EXPECT_EQ(call(f, 1), Outcome::refused);
    EXPECT_THAT(f.report().reason, testing::HasSubstr("an environment variable that it lists changed"));
    EXPECT_TRUE(entries().empty()) << "it would be a's entry";
    next_mode.clear();
    EXPECT_EQ(call(f, 1), Outcome::recorded) << "of mode c";
    set_mode("a");
    EXPECT_EQ(call(f, 1), Outcome::recorded) << "the refusal was of that one call";
}

TEST_F(Facts, AProgramThatTheSpecNamesMayBeLaunchedUnderAnotherName)
{
    Spec spec = vector_spec();
    spec.code = {device.program("one name", k_small_kernels)};
    Cache cache{options()};
    const Program same = device.program("another name", k_small_kernels);
    Function f = cache.wrap("f", device, spec,
                            [&](Recorder& r) { r.stream().launch(same, "add_one", k_launch, r["x"], r["y"]); });
    EXPECT_EQ(call(f, 1), Outcome::recorded) << f.report().reason << ": its source is a guard";
}

} // namespace
} // namespace warmgraph::test::facts_test
