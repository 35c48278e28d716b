// The values with which a scalar is probed, and the text about them in the entry.
#include <bit>
#include <cmath>
#include <limits>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "warmgraph/capture/numbers.hpp"

namespace warmgraph::test::numbers_test {
namespace {

std::uint64_t bits(std::int32_t value) { return static_cast<std::uint32_t>(value); }
std::uint64_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }
std::uint64_t bits(double value) { return std::bit_cast<std::uint64_t>(value); }

class Probes : public testing::Test {
protected:
    /// Checks that the probed values are in the range, all different, and different from `current`.
    template <class T>
    static std::set<std::uint64_t> checked(DType type, T low, T high, T current)
    {
        const ScalarRange range{bits(low), bits(high)};
        const ProbePlan plan = plan_probes(type, range, bits(current));
        const std::set<std::uint64_t> values(plan.values.begin(), plan.values.end());
        EXPECT_EQ(values.size(), plan.values.size()) << "each once";
        EXPECT_FALSE(values.contains(bits(current)));
        for (const std::uint64_t value : values) EXPECT_TRUE(in_range(type, value, range)) << value;
        EXPECT_LE(plan.least, plan.values.size());
        return values;
    }
    static std::set<std::int32_t> whole(std::int32_t low, std::int32_t high, std::int32_t current)
    {
        std::set<std::int32_t> result;
        for (const std::uint64_t value : checked(DType::i32, low, high, current))
            result.insert(static_cast<std::int32_t>(value));
        return result;
    }
};

TEST_F(Probes, OfARangeOf4096WholeNumbersAreAllOfThem)
{
    EXPECT_EQ(whole(-2048, 2047, 7).size(), 4095U);
    const auto plan = plan_probes(DType::i32, {bits(-2048), bits(2047)}, bits(7));
    EXPECT_EQ(plan.total, 4096U);
    EXPECT_TRUE(plan.is_exhaustive());
    EXPECT_FALSE(plan_probes(DType::i32, {bits(-2048), bits(2048)}, bits(7)).is_exhaustive());
    EXPECT_EQ(whole(0, 1, 1), (std::set{0}));
    EXPECT_TRUE(whole(5, 5, 5).empty());
    EXPECT_EQ(plan_probes(DType::i32, {bits(5), bits(5)}, bits(5)).total, 1U);
}

TEST_F(Probes, OfALargerRangeAreItsEndsItsMiddleAndWhatKernelsAskFor)
{
    const auto values = whole(0, 1'000'000, 5);
    for (std::int32_t i = 0; i < 130; ++i) {
        EXPECT_TRUE(i == 5 || values.contains(i)) << i;
        EXPECT_TRUE(values.contains(1'000'000 - i)) << i;
    }
    for (std::int32_t i = -128; i < 128; ++i) EXPECT_TRUE(values.contains(500'000 + i)) << i;
    for (std::int32_t power = 1; power <= 524'288; power *= 2)
        for (const std::int32_t value : {power - 1, power, power + 1})
            EXPECT_TRUE(value == 5 || values.contains(value)) << value;
    for (const std::int32_t step : {16, 64, 128, 256})
        for (std::int32_t i = 1; i < 8; ++i) EXPECT_TRUE(values.contains(i * step)) << i * step;
    EXPECT_EQ(values.size(), 4095U) << "with pseudo-random ones; the current one is among the 4,096";
}

TEST_F(Probes, AroundZeroAreMinusOneZeroAndOne)
{
    const auto values = whole(-1'000'000, 1'000'000, 12'345);
    for (const std::int32_t value : {-1, 0, 1, 16, -999'936}) EXPECT_TRUE(values.contains(value)) << value;
    const auto behind = whole(1'000'003, 3'000'000, 1'000'003);
    for (const std::int32_t value : {1'000'016, 1'000'064, 1'048'576, 2'097'153})
        EXPECT_TRUE(behind.contains(value)) << value;
}

TEST_F(Probes, HoldForTheLimitsOfEachType)
{
    using Limits = std::numeric_limits<std::int32_t>;
    const auto values = whole(Limits::min(), Limits::max(), 0);
    EXPECT_TRUE(values.contains(Limits::min()));
    EXPECT_TRUE(values.contains(Limits::max()));
    EXPECT_EQ(plan_probes(DType::i32, {bits(Limits::min()), bits(Limits::max())}, 0).total, 1ULL << 32);
    const auto all = plan_probes(DType::u64, {0, ~0ULL}, 3);
    EXPECT_EQ(all.total, 0U) << "2^64";
    EXPECT_FALSE(all.is_exhaustive());
    EXPECT_THAT(all.values, testing::Contains(~0ULL));
    EXPECT_THAT(all.values, testing::Contains(1ULL << 63));
    const std::uint64_t top = ~0ULL;
    EXPECT_THAT(plan_probes(DType::u64, {top - 3, top}, top).values,
                testing::UnorderedElementsAre(top - 1, top - 2, top - 3));
}

TEST_F(Probes, OfFloatsAreTheNumbersAtWhichLibrariesTakeAnotherWay)
{
    const auto values = checked(DType::f32, -1.0F, 3.0F, 2.0F);
    for (const float value : {-1.0F, 3.0F, 0.0F, 1.0F, 0.5F, 0.25F, -0.5F, std::nextafter(0.0F, 1.0F),
                              std::nextafter(1.0F, 0.0F), std::nextafter(3.0F, 0.0F)})
        EXPECT_TRUE(values.contains(bits(value))) << value;
    EXPECT_GE(values.size(), 256U);
    const auto doubles = checked(DType::f64, -1e300, 1e300, 0.0);
    for (const double value : {-1e300, 1e300, 1.0, -1.0, 32.0, -31.0, 0x1p-24})
        EXPECT_TRUE(doubles.contains(bits(value)));
    const auto plan = plan_probes(DType::f32, {bits(-1.0F), bits(3.0F)}, bits(2.0F));
    EXPECT_EQ(plan.total, 0U);
    EXPECT_FALSE(plan.is_exhaustive()) << "no list of floats is all of them";
}

/// The first probes are made even when no time is left.
TEST_F(Probes, ComeInTheOrderInWhichTheyTellMost)
{
    const auto first_of = [](DType type, const ScalarRange& range, std::uint64_t current) {
        const auto plan = plan_probes(type, range, current);
        return std::set(plan.values.begin(), plan.values.begin() + static_cast<std::ptrdiff_t>(plan.least));
    };
    const auto whole = first_of(DType::i32, {bits(0), bits(9999)}, bits(77));
    for (const std::int32_t value : {0, 9999, 1, 9998}) EXPECT_TRUE(whole.contains(bits(value))) << value;
    EXPECT_LE(whole.size(), 16U);
    EXPECT_EQ(first_of(DType::i32, {bits(0), bits(9999)}, bits(0)).size() + 1, whole.size())
        << "the current value is not probed again";
    const auto real = first_of(DType::f32, {bits(-8.0F), bits(8.0F)}, bits(2.0F));
    for (const float value : {-8.0F, 8.0F, 0.0F, 1.0F, -1.0F}) EXPECT_TRUE(real.contains(bits(value))) << value;
}

TEST_F(Probes, AreTheSameAtEachRecording)
{
    const ScalarRange range{bits(0), bits(1'000'000)};
    EXPECT_EQ(plan_probes(DType::i32, range, 7).values, plan_probes(DType::i32, range, 7).values);
}

TEST(ProofText, SaysProvenOnlyWhereEveryValueWasSeen)
{
    const auto text = [](std::int32_t high, std::size_t left_out) {
        const auto plan = plan_probes(DType::i32, {bits(0), bits(high)}, bits(1));
        return proof_text(plan, plan.values.size() - left_out);
    };
    EXPECT_EQ(text(2047, 0), "proven at all 2,048 values");
    EXPECT_EQ(text(2047, 1), "sampled at 2,047 of 2,048 values");
    EXPECT_EQ(text(1'000'000, 0), "sampled at 4,096 of 1,000,001 values");
    EXPECT_EQ(text(1'000'000, 4095 - 411), "sampled at 412 of 1,000,001 values");
    EXPECT_EQ(text(1, 0), "proven at all 2 values");
}

TEST(ProofText, OfFloatsNeverSaysProven)
{
    const auto plan = plan_probes(DType::f32, {bits(0.0F), bits(1.0F)}, bits(0.5F));
    EXPECT_EQ(proof_text(plan, 411), "sampled at 412 values");
    const auto single = plan_probes(DType::f32, {bits(2.0F), bits(2.0F)}, bits(2.0F));
    EXPECT_THAT(single.values, testing::IsEmpty());
    EXPECT_EQ(proof_text(single, 0), "sampled at 1 values");
}

} // namespace
} // namespace warmgraph::test::numbers_test
