#include <cmath>
#include <limits>

#include "facade_fixture.hpp"

namespace warmgraph::test::scalar_test {
namespace {

class Scalars : public FacadeTest {
protected:
    [[nodiscard]] Spec spec(ScalarDecl scalar) const
    {
        Spec result = vector_spec();
        result.scalars = {std::move(scalar)};
        return result;
    }
    /// Records y = x + g(n) and returns the report of the first call.
    template <class G>
    [[nodiscard]] Report report_of(const ScalarDecl& scalar, int n, G g)
    {
        CacheOptions patient = options();
        patient.probing_ms = 10'000; // milliseconds; enough for all probes on a slow machine
        Cache cache{patient};
        Function f = cache.wrap("f", device, spec(scalar), [&](Recorder& r) {
            r.stream().launch(program, "add_int", k_launch, r["x"], r["y"],
                              static_cast<std::int32_t>(g(r.scalar<std::int32_t>("n"))));
        });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        f({{"x", x}, {"y", y}, {"n", n}});
        EXPECT_EQ(read(y)[0], static_cast<float>(g(n))) << "whatever happened, the result is the function's";
        return f.report();
    }
};

TEST_F(Scalars, AChangedScalarIsPatchedAndNotRecordedAgain)
{
    for (int process = 0; process < 2; ++process) {
        Cache cache{options()};
        Function f = cache.wrap("f", device, spec(scalar("n", i32, 0, 1000)), [this](Recorder& r) {
            r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], r.scalar<std::int32_t>("n"));
        });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        for (const int n : {7, 8, 0, 1000, 999}) {
            f({{"x", x}, {"y", y}, {"n", n}});
            EXPECT_EQ(read(y)[1], 1.0F + static_cast<float>(n));
        }
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, process == 0 ? 1U : 0U);
    }
    EXPECT_EQ(entries().size(), 1U);
}

TEST_F(Scalars, AScalarPlusAConstantIsPatchedToo)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("n", i32, -50, 50)), [this](Recorder& r) {
        r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], r.scalar<std::int32_t>("n") - 3);
    });
    for (const int n : {1, 50, -50, 3}) {
        f({{"x", m_x}, {"y", m_y}, {"n", n}});
        EXPECT_EQ(read(m_y)[0], static_cast<float>(n - 3));
    }
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U);
}

TEST_F(Scalars, AFloatScalarIsPatchedBitForBit)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("n", f32, -10, 10)), [this](Recorder& r) {
        r.stream().launch(program, "scale", k_launch, r["x"], r["y"], r.scalar<float>("n"));
    });
    for (const float n : {0.5F, -2.25F, 10.0F}) {
        f({{"x", m_x}, {"y", m_y}, {"n", n}});
        EXPECT_EQ(read(m_y)[2], 2.0F * n);
    }
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U);
}

TEST_F(Scalars, WithoutARangeTheWholeTypeIsProbed)
{
    EXPECT_EQ(report_of(scalar("n", i32), 5, [](std::int32_t n) { return n; }).outcome, Outcome::recorded);
}

TEST_F(Scalars, ValuesThatOnlyLookLikeTheScalarAreRefused)
{
    const auto refused = [&](auto g, const char* because) {
        const Report report = report_of(scalar("n", i32, 0, 10'000), 5, g);
        EXPECT_EQ(report.outcome, Outcome::refused);
        EXPECT_THAT(report.reason, HasSubstr(because));
        EXPECT_TRUE(entries().empty());
    };
    refused([](std::int32_t n) { return n % 64; }, "not the scalar itself plus a constant");
    refused([](std::int32_t n) { return n * 2; }, "not the scalar itself plus a constant");
    refused([](std::int32_t n) { return n < 100 ? n : 100; }, "scalar 'n'");
    refused([](std::int32_t n) { return n < 5000 ? 0 : 1; }, "scalar 'n'");
    refused([](std::int32_t n) { return (n + 1) % 16 == 0 ? 0 : n; }, "scalar 'n'"); // g ends each page with 0
    // For other values g returns 5, the value of this call. This only shows when the probes are compared with each
    // other.
    refused([](std::int32_t n) { return n < 5000 ? n : 5; }, "only for some of its values");
}

/// BLAS does not read C when beta is 0: for this one number, another kernel runs.
TEST_F(Scalars, AFloatThatTakesAnotherWayAtOneNumberIsRefused)
{
    for (const float special : {0.0F, 1.0F, -1.0F}) {
        Cache cache{options()};
        Function f = cache.wrap("f", device, spec(scalar("beta", f32, -1, 3)), [&](Recorder& r) {
            const auto beta = r.scalar<float>("beta");
            if (beta == special)
                r.stream().zero(r["y"], k_count * 4);
            else
                r.stream().launch(program, "scale", k_launch, r["x"], r["y"], beta);
        });
        const Buffer x = floats(1), y = device.allocate(k_count * 4);
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"beta", 2.5F}}), Outcome::refused) << special;
        EXPECT_THAT(f.report().reason, HasSubstr("scalar 'beta'"));
        EXPECT_EQ(read(y)[0], 2.5F);
        f({{"x", x}, {"y", y}, {"beta", special}});
        EXPECT_EQ(read(y)[0], 0.0F);
    }
}

TEST_F(Scalars, TheEntrySaysHowEachWasProven)
{
    Spec three = vector_spec();
    three.scalars = {scalar("n", i32, 0, 99), scalar("m", i32, 0, 1'000'000), scalar("factor", f32, 0, 1)};
    CacheOptions patient = options();
    patient.probing_ms = 10'000;
    Cache cache{patient};
    Function f = cache.wrap("f", device, three, [this](Recorder& r) {
        const Address at = r.alloc("scratch", k_count * 4), next = r.alloc("next", k_count * 4);
        r.stream().launch(program, "add_int", k_launch, r["x"], at, r.scalar<std::int32_t>("n"));
        r.stream().launch(program, "add_int", k_launch, at, next, r.scalar<std::int32_t>("m"));
        r.stream().launch(program, "scale", k_launch, next, r["y"], r.scalar<float>("factor"));
    });
    ASSERT_EQ(f({{"x", m_x}, {"y", m_y}, {"n", 1}, {"m", 2}, {"factor", 0.5F}}), Outcome::recorded)
        << f.report().reason;
    const std::string text = cache.readable("f");
    EXPECT_THAT(text, HasSubstr("n: proven at all 100 values"));
    EXPECT_THAT(text, testing::ContainsRegex("m: sampled at 4,09[0-9] of 1,000,001 values"));
    EXPECT_THAT(text, testing::ContainsRegex("factor: sampled at [0-9]+ values"));
}

TEST_F(Scalars, WithoutTimeTheMostTellingValuesAreProbedAndTheEntrySaysSo)
{
    CacheOptions hasty = options();
    hasty.probing_ms = 0;
    Cache cache{hasty};
    // A tenth of the compile time is available for probing, so the test compiles before.
    static_cast<void>(add_one(cache)({{"x", m_x}, {"y", m_y}}));
    Function f = cache.wrap("f", device, spec(scalar("n", i32, 0, 3000)), [this](Recorder& r) {
        r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], r.scalar<std::int32_t>("n"));
    });
    ASSERT_EQ(f({{"x", m_x}, {"y", m_y}, {"n", 1}}), Outcome::recorded) << f.report().reason;
    EXPECT_THAT(cache.readable("f"), HasSubstr("of 3,001 values")) << "not proven";
}

TEST_F(Scalars, AValueMadeOfTwoScalarsIsRefused)
{
    Spec two = vector_spec();
    two.scalars = {scalar("a", i32, 0, 100), scalar("b", i32, 0, 100)};
    Cache cache{options()};
    Function f = cache.wrap("f", device, two, [this](Recorder& r) {
        r.stream().launch(program, "add_int", k_launch, r["x"], r["y"],
                          r.scalar<std::int32_t>("a") + r.scalar<std::int32_t>("b"));
    });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}, {"a", 1}, {"b", 2}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("two scalars"));
    EXPECT_EQ(read(m_y)[0], 3.0F);
}

TEST_F(Scalars, AGridThatFollowsAScalarIsRefusedWithTheCure)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("n", i32, 1, 4)), [this](Recorder& r) {
        r.stream().launch(
            program, "add_one",
            {.grid = {static_cast<std::uint32_t>(r.scalar<std::int32_t>("n")), 1, 1}, .block = {16, 1, 1}}, r["x"],
            r["y"]);
    });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}, {"n", 4}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, AllOf(HasSubstr("scalar 'n'"), HasSubstr("Spec::values")));
    EXPECT_EQ(read(m_y), read(floats(1)));
}

TEST_F(Scalars, AnAddressThatFollowsAScalarIsRefused)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("n", i32, 0, 1)), [this](Recorder& r) {
        const auto offset = static_cast<std::uint64_t>(r.scalar<std::int32_t>("n")) * 128;
        r.stream().zero(r["y"] + offset, 64);
        r.stream().launch(program, "add_one", {.grid = {1, 1, 1}, .block = {16, 1, 1}}, r["x"], r["y"]);
    });
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}, {"n", 1}}), Outcome::refused);
    EXPECT_THAT(f.report().reason, HasSubstr("address that depends on the scalar 'n'"));
}

TEST_F(Scalars, AValueIsAGuardWithAVariantForEach)
{
    Spec by_value = vector_spec();
    by_value.values = {scalar("groups", i32)};
    for (int process = 0; process < 2; ++process) {
        Cache cache{options()};
        Function f = cache.wrap("f", device, by_value, [this](Recorder& r) {
            const auto groups = static_cast<std::uint32_t>(r.scalar<std::int32_t>("groups"));
            r.stream().zero(r["y"], k_count * 4);
            r.stream().launch(program, "add_one", {.grid = {groups, 1, 1}, .block = {16, 1, 1}}, r["x"], r["y"]);
        });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        for (const int groups : {1, 4, 1}) {
            f({{"x", x}, {"y", y}, {"groups", groups}});
            EXPECT_EQ(read(y)[16], groups == 1 ? 0.0F : 17.0F);
        }
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, process == 0 ? 2U : 0U);
    }
    EXPECT_EQ(entries().size(), 2U);
}

TEST_F(Scalars, NumbersConvertWhenNothingIsLost)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("n", i64, 0, 100)), [this](Recorder& r) {
        r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], 1);
        (void)r.scalar<std::int64_t>("n");
    });
    EXPECT_NO_THROW(f({{"x", m_x}, {"y", m_y}, {"n", 5}}));
    EXPECT_NO_THROW(f({{"x", m_x}, {"y", m_y}, {"n", std::uint8_t{5}}}));
    EXPECT_TRUE(failed_with(thrown_by([&] { f({{"x", m_x}, {"y", m_y}, {"n", 2.5}}); }), ErrorCode::invalid_argument,
                            "i64 cannot hold"));
}

TEST_F(Scalars, WithoutARangeAFloatMayBeInfiniteOrNoNumber)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("factor", f32)), [this](Recorder& r) {
        r.stream().launch(program, "scale", k_launch, r["x"], r["y"], r.scalar<float>("factor"));
    });
    const Buffer x = floats(1), y = device.allocate(k_count * 4);
    ASSERT_EQ(f({{"x", x}, {"y", y}, {"factor", 2.0F}}), Outcome::recorded) << f.report().reason;
    constexpr float k_infinity = std::numeric_limits<float>::infinity();
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"factor", -k_infinity}}), Outcome::replayed);
    EXPECT_EQ(read(y)[0], -k_infinity);
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"factor", std::numeric_limits<float>::quiet_NaN()}}), Outcome::replayed);
    EXPECT_TRUE(std::isnan(read(y)[0]));
}

TEST_F(Scalars, AValueOutsideItsRangeIsAnErrorThatNamesTheRange)
{
    Cache cache{options()};
    Function f = cache.wrap("f", device, spec(scalar("n", i32, 0, 100)), [this](Recorder& r) {
        r.stream().launch(program, "add_int", k_launch, r["x"], r["y"], r.scalar<std::int32_t>("n"));
    });
    f({{"x", m_x}, {"y", m_y}, {"n", 100}});
    EXPECT_THAT(message_of(thrown_by([&] { f({{"x", m_x}, {"y", m_y}, {"n", 101}}); })),
                HasSubstr("outside its declared range [0, 100]"));
}

} // namespace
} // namespace warmgraph::test::scalar_test
