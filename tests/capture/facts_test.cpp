// Facts that no argument shows. The library reads them when they are needed, and a published entry must have the facts
// of its own call.
#include "facade_fixture.hpp"

namespace warmgraph::test::facts_test {
namespace {

constexpr const char* k_variable = "WARMGRAPH_TEST_MODE";

class Facts : public FacadeTest {
protected:
    ~Facts() override
    {
        device.synchronize(); // the driver's threads must not read the environment while it changes
        ::unsetenv(k_variable);
    }
    void set_mode(const char* mode) const
    {
        device.synchronize();
        ::setenv(k_variable, mode, 1);
    }
    /// The function y = x + 1, or y = x + 2 in mode "b".
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
    std::string next_mode{}; ///< the mode that the callable sets during a capture
};

TEST_F(Facts, AVariableThatChangesWhileItIsRecordedKeepsTheRecordingFromBeingPublished)
{
    set_mode("a");
    Cache cache{options()};
    Function f = by_mode(cache);
    next_mode = "c"; // for the function "c" means the same as "a", so the captures agree
    EXPECT_EQ(call(f, 1), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("an environment variable in Spec::environment changed"));
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
