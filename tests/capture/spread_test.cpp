// Tests the spread (how much a function's own results differ) on the flat device.
#include <cmath>
#include <functional>
#include <limits>

#include "flat_fixture.hpp"
#include "verify/spread.hpp"
#include "verify/trials.hpp"

namespace warmgraph::test::spread_test {
namespace {

class SpreadTest : public testing::Test {
protected:
    SpreadTest() { interface.regions.push_back({"y", cachefmt::RegionKind::output, DType::f32, {2}, {}}); }

    template <class T>
    std::vector<MemoryRef> left(const std::vector<T>& values)
    {
        const MemoryRef memory{device->allocate(values.size() * sizeof(T))->address, values.size() * sizeof(T)};
        std::ranges::copy(values, memory.address.pointer<T>());
        return {memory};
    }
    template <class T>
    std::size_t add(Spread& spread, const std::vector<T>& values)
    {
        const auto added = spread.add(left(values));
        EXPECT_TRUE(added) << added.error().message;
        return added.value_or(99);
    }
    static bool is_refused(const Result<void>& result)
    {
        return !result && result.error().code == ErrorCode::not_recordable;
    }
    Spread of(DType type) { return {device, interface, {type}, {1}}; }
    std::shared_ptr<FlatDevice> device = std::make_shared<FlatDevice>();
    Interface interface;
};

TEST_F(SpreadTest, EqualRunsDemandABitwiseReplay)
{
    Spread spread = of(DType::f32);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(add(spread, std::vector{1.0F, 2.0F}), 0U);
    ASSERT_TRUE(spread.measure());
    EXPECT_EQ(spread.text(), "bitwise (3 runs)");
    EXPECT_TRUE(spread.accept(left(std::vector{1.0F, 2.0F})));
    const auto refused = spread.accept(left(std::vector{1.0F, 2.0F + 1e-6F}));
    ASSERT_TRUE(failed_with(refused, ErrorCode::verification_failed));
    EXPECT_THAT(refused.error().message, AllOf(HasSubstr("the restored graph leaves 1 elements of 'y'"),
                                               HasSubstr("the first at 1"), HasSubstr("own runs leaves 0")));
}

/// All runs of the function give the same sum. A sum in another order may differ by one rounding.
TEST_F(SpreadTest, OneRoundingIsNoDeparture)
{
    Spread spread = of(DType::f32);
    add(spread, std::vector{1.0F, 2.0F});
    ASSERT_TRUE(spread.measure());
    EXPECT_TRUE(spread.accept(left(std::vector{1.0F, std::nextafter(2.0F, 3.0F)})));
    EXPECT_FALSE(spread.accept(left(std::vector{1.0F, std::nextafter(std::nextafter(2.0F, 3.0F), 3.0F)})));
}

TEST_F(SpreadTest, AReplayMayLeaveTheRunsNoOftenerAndNoFartherThanOneOfThemLeavesTheOthers)
{
    Spread spread = of(DType::f32);
    add(spread, std::vector{1.0F, 2.0F, 3.0F});
    add(spread, std::vector{1.0F, roundings_above(2.0F, 4), 3.0F});
    ASSERT_TRUE(spread.measure());
    EXPECT_FALSE(spread.is_bitwise());
    EXPECT_EQ(spread.text(), "within spread (2 runs, 1 elements by 4 roundings)");
    EXPECT_TRUE(spread.accept(left(std::vector{1.0F, roundings_above(2.0F, 2), 3.0F})));
    EXPECT_TRUE(spread.accept(left(std::vector{1.0F, roundings_above(2.0F, 8), 3.0F})))
        << "as far from them as they are apart";
    EXPECT_FALSE(spread.accept(left(std::vector{1.0F, roundings_above(2.0F, 9), 3.0F}))) << "farther";
    EXPECT_FALSE(spread.accept(left(std::vector{roundings_above(1.0F, 3), roundings_above(2.0F, 8), 3.0F})))
        << "oftener";
    EXPECT_FALSE(spread.accept(left(std::vector{1.0F, NAN, 3.0F})));
}

TEST_F(SpreadTest, WhatLeavesTheRunsByNoMoreThanTwiceAnOwnOneIsNear)
{
    Spread spread = of(DType::f32);
    add(spread, std::vector{1.0F, 2.0F, 3.0F});
    add(spread, std::vector{1.0F, roundings_above(2.0F, 4), 3.0F});
    ASSERT_TRUE(spread.measure());
    EXPECT_TRUE(spread.is_near(left(std::vector{1.0F, roundings_above(2.0F, 2), 3.0F}))) << "within";
    EXPECT_TRUE(spread.is_near(left(std::vector{1.0F, roundings_above(2.0F, 12), 3.0F}))) << "twice as far";
    EXPECT_FALSE(spread.is_near(left(std::vector{1.0F, roundings_above(2.0F, 13), 3.0F})));
    EXPECT_TRUE(spread.is_near(left(std::vector{roundings_above(1.0F, 3), roundings_above(2.0F, 8), 3.0F})))
        << "twice as often";
    EXPECT_FALSE(spread.is_near(
        left(std::vector{roundings_above(1.0F, 3), roundings_above(2.0F, 8), roundings_above(3.0F, 3)})));
    EXPECT_FALSE(spread.is_near(left(std::vector{1.0F, NAN, 3.0F})));
}

TEST_F(SpreadTest, NothingElseIsNearRunsThatAreEqual)
{
    for (const DType type : {DType::f32, DType::i32}) {
        Spread spread = of(type);
        add(spread, std::vector{1.0F, 2.0F});
        ASSERT_TRUE(spread.measure());
        EXPECT_TRUE(spread.is_near(left(std::vector{1.0F, 2.0F})));
        EXPECT_FALSE(spread.is_near(left(std::vector{1.0F, 2.00001F})));
    }
}

TEST_F(SpreadTest, TheAnswerIsHeldToTheRunsAndCountsAsOne)
{
    Spread spread = of(DType::f32);
    for (int i = 0; i < 2; ++i) add(spread, std::vector{1.0F, 2.0F});
    ASSERT_TRUE(spread.measure());
    EXPECT_THAT(message_of(spread.accept_answer(left(std::vector{1.0F, 3.0F}))),
                HasSubstr("the call leaves 1 elements of 'y'"));
    EXPECT_EQ(spread.text(), "bitwise (2 runs)");
    ASSERT_TRUE(spread.accept_answer(left(std::vector{1.0F, 2.0F})));
    EXPECT_EQ(spread.text(), "bitwise (3 runs)");
}

TEST_F(SpreadTest, IntegersHaveNoTolerance)
{
    Spread spread = of(DType::i32);
    EXPECT_EQ(add(spread, std::vector{1, 2}), 0U);
    EXPECT_EQ(add(spread, std::vector{1, 3}), 1U);
    EXPECT_EQ(add(spread, std::vector{1, 2}), 0U) << "as the first";
    EXPECT_TRUE(is_refused(spread.measure()));
    Spread equal = of(DType::i32);
    add(equal, std::vector{1, 2});
    ASSERT_TRUE(equal.measure());
    EXPECT_THAT(message_of(equal.accept(left(std::vector{1, 3}))), AllOf(HasSubstr("'y'"), HasSubstr("byte 4")));
}

TEST_F(SpreadTest, WhatIsOnlyReadIsNotCompared)
{
    interface.regions.push_back({"w", cachefmt::RegionKind::weights, DType::i32, {2}, {}});
    Spread spread{device, interface, {DType::i32, DType::i32}, {1, 0}};
    const auto y = left(std::vector{1, 2});
    ASSERT_TRUE(spread.add({y[0], left(std::vector{5, 6})[0]}));
    ASSERT_TRUE(spread.add({y[0], left(std::vector{7, 8})[0]}));
    ASSERT_TRUE(spread.measure());
    EXPECT_TRUE(spread.is_bitwise());
    EXPECT_TRUE(spread.accept({y[0], left(std::vector{9, 9})[0]}));
}

TEST_F(SpreadTest, NumbersThatBecomeNanAreUninitialisedMemory)
{
    Spread spread = of(DType::f32);
    add(spread, std::vector{1.0F, 2.0F});
    add(spread, std::vector{1.0F, NAN});
    const auto measured = spread.measure();
    ASSERT_TRUE(is_refused(measured));
    EXPECT_THAT(measured.error().message, AllOf(HasSubstr("NaN or infinity in 'y'"), HasSubstr("element 1")));
}

TEST_F(SpreadTest, HalfPrecisionTypesAreComparedByValue)
{
    for (const auto& [type, one, beyond] :
         {std::tuple{DType::f16, 0x3C00, 0x3C04}, std::tuple{DType::bf16, 0x3F80, 0x3F84}}) {
        Spread spread = of(type);
        add(spread, std::vector{static_cast<std::uint16_t>(one)});
        add(spread, std::vector{static_cast<std::uint16_t>(beyond)});
        ASSERT_TRUE(spread.measure());
        EXPECT_EQ(spread.text(), "within spread (2 runs, 1 elements by 4 roundings)");
        EXPECT_TRUE(spread.accept(left(std::vector{static_cast<std::uint16_t>(one + 2)})));
        EXPECT_FALSE(spread.accept(left(std::vector{static_cast<std::uint16_t>(one + 40)})));
    }
}

TEST_F(SpreadTest, KeepsEachOutcomeOnceAndReleasesAll)
{
    const auto one = left(std::vector{1.0F, 2.0F}), other = left(std::vector{1.0F, 3.0F});
    const std::size_t before = device->live();
    {
        Spread spread = of(DType::f32);
        for (int i = 0; i < 3; ++i)
            for (const auto& results : {one, other}) ASSERT_TRUE(spread.add(results));
        EXPECT_EQ(device->live(), before + 2);
    }
    EXPECT_EQ(device->live(), before);
}

TEST_F(SpreadTest, RunsAreRepeatedOnlyWhereTheyDiffer)
{
    for (const bool differs : {false, true}) {
        std::size_t runs = 0;
        Spread spread = of(DType::f32);
        ASSERT_TRUE(learn_spread(spread, 2, [&] {
            ++runs;
            return spread.add(left(std::vector{differs && runs == 2 ? 2.0F : 1.0F}));
        }));
        EXPECT_EQ(runs, differs ? k_most_own_runs : 2U);
    }
}

} // namespace
} // namespace warmgraph::test::spread_test
