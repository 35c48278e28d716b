#include <cmath>
#include <functional>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "verify/spread.hpp"
#include "verify/verification.hpp"

namespace warmgraph {
namespace {

template <class T>
Bytes bytes_of(std::initializer_list<T> values)
{
    Bytes result;
    for (const T value : values) append(result, value);
    return result;
}

class SpreadTest : public testing::Test {
protected:
    static Interface one(const std::string& name)
    {
        Interface interface;
        interface.regions.push_back({name, cachefmt::RegionKind::output, DType::f32, {2}, {}});
        return interface;
    }
    Interface interface = one("y");
};

TEST_F(SpreadTest, EqualRunsDemandABitwiseReplay)
{
    Spread spread{interface, {DType::f32}};
    for (int i = 0; i < 3; ++i) spread.add({bytes_of<float>({1.0F, 2.0F})});
    ASSERT_TRUE(spread.measure());
    EXPECT_EQ(spread.text(), "bitwise (3 runs)");
    EXPECT_TRUE(spread.accept({bytes_of<float>({1.0F, 2.0F})}));
    const auto refused = spread.accept({bytes_of<float>({1.0F, std::nextafter(2.0F, 3.0F)})});
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::verification_failed);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("'y'[1]"));
}

TEST_F(SpreadTest, AReplayMayDifferAsMuchAsTheRunsDoAndNoMore)
{
    Spread spread{interface, {DType::f32}};
    spread.add({bytes_of<float>({1.0F, 2.0F})});
    spread.add({bytes_of<float>({1.0F, 2.5F})});
    ASSERT_TRUE(spread.measure());
    EXPECT_THAT(spread.text(), testing::HasSubstr("within spread 0.5"));
    EXPECT_TRUE(spread.accept({bytes_of<float>({1.0F, 2.25F})}));
    EXPECT_FALSE(spread.accept({bytes_of<float>({1.0F, 3.25F})}));
    EXPECT_FALSE(spread.accept({bytes_of<float>({1.0F, NAN})}));
}

TEST_F(SpreadTest, IntegersHaveNoTolerance)
{
    Spread spread{interface, {DType::i32}};
    spread.add({bytes_of<std::int32_t>({1, 2})});
    spread.add({bytes_of<std::int32_t>({1, 3})});
    const auto measured = spread.measure();
    ASSERT_FALSE(measured);
    EXPECT_EQ(measured.error().code, ErrorCode::not_recordable);
}

TEST_F(SpreadTest, NumbersThatBecomeNanAreUninitialisedMemory)
{
    Spread spread{interface, {DType::f32}};
    spread.add({bytes_of<float>({1.0F, 2.0F})});
    spread.add({bytes_of<float>({1.0F, NAN})});
    EXPECT_FALSE(spread.measure());
}

TEST_F(SpreadTest, HalfPrecisionTypesAreComparedByValue)
{
    for (const auto& [type, one_bits, two_bits] :
         {std::tuple{DType::f16, 0x3C00, 0x4000}, std::tuple{DType::bf16, 0x3F80, 0x4000}}) {
        Spread spread{interface, {type}};
        spread.add({bytes_of<std::uint16_t>({static_cast<std::uint16_t>(one_bits)})});
        spread.add({bytes_of<std::uint16_t>({static_cast<std::uint16_t>(two_bits)})});
        ASSERT_TRUE(spread.measure());
        EXPECT_THAT(spread.text(), testing::HasSubstr("within spread 1 (2 runs)"));
    }
}

/// Runs as learn_spread makes them: run i finds scratch filled with pattern i % 3, but the first one finds it new.
TEST_F(SpreadTest, ResultsThatFollowWhatScratchHeldAreNoSpread)
{
    const auto learned = [this](const std::function<float(std::size_t)>& result) {
        Spread spread{interface, {DType::f32}};
        return learn_spread(
            spread, [&](std::size_t i) -> Result<Outcomes> { return Outcomes{bytes_of<float>({result(i), 1.0F})}; });
    };
    // A counter in scratch: finite whatever it holds, and so within the spread that it makes itself.
    const auto refused = learned([](std::size_t i) { return i == 0 ? 5.0F : static_cast<float>(i % k_poison.size()); });
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::not_recordable);
    EXPECT_THAT(refused.error().message, testing::HasSubstr("reads scratch that it did not write"));
    EXPECT_TRUE(learned([](std::size_t i) { return static_cast<float>(i % 2); })) << "differs on equal scratch too";
    EXPECT_TRUE(learned([](std::size_t i) { return i == 0 ? 5.0F : 4.0F; })) << "only the first run is another";
    EXPECT_TRUE(learned([](std::size_t) { return 4.0F; }));
}

} // namespace
} // namespace warmgraph
