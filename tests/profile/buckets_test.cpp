#include <limits>
#include <random>

#include "matchers.hpp"
#include "sample_profile.hpp"
#include "warmgraph/profile/buckets.hpp"

namespace warmgraph::profile::buckets_test {
namespace {

using Sizes_ = std::vector<std::int64_t>;

BucketRequest wish(std::uint32_t most, std::int64_t multiple_of = 1) { return {{{"tokens", 0}}, most, multiple_of}; }

TEST(Learn, OneBucketIsTheLargestSize) { EXPECT_THAT(learn({{3, 9}, {7, 1}}, wish(1)), ElementsAre(7)); }

TEST(Learn, AsManyBucketsAsSizesPadNothing)
{
    EXPECT_THAT(learn({{3, 9}, {7, 1}}, wish(5)), ElementsAre(3, 7));
    EXPECT_THAT(learn({{8, 2}}, wish(5)), ElementsAre(8));
}

TEST(Learn, WhatIsCalledOftenIsPaddedLeast)
{
    EXPECT_THAT(learn({{10, 1000}, {60, 1}, {100, 1}}, wish(2)), ElementsAre(10, 100));
    EXPECT_THAT(learn({{10, 1}, {60, 1000}, {100, 1}}, wish(2)), ElementsAre(60, 100));
}

TEST(Learn, BucketsAreMultiples)
{
    EXPECT_THAT(learn({{3, 1}, {17, 1}, {33, 1}}, wish(3, 16)), ElementsAre(16, 32, 48));
    EXPECT_THAT(learn({{1, 1}, {2, 1}, {16, 1}}, wish(3, 16)), ElementsAre(16)) << "equal choices: the one with fewer";
}

TEST(Learn, OfNothingIsNothing)
{
    EXPECT_TRUE(learn({}, wish(3)).empty());
    EXPECT_TRUE(learn({{0, 5}}, wish(3)).empty());
    EXPECT_TRUE(learn({{5, 5}}, wish(0)).empty());
}

/// The least padding that is possible if at most `most` sizes are chosen as buckets.
double least_padding(const Histogram& sizes, std::size_t most)
{
    Sizes_ all;
    for (const auto& [size, calls] : sizes) all.push_back(size);
    double least = std::numeric_limits<double>::infinity();
    for (std::uint32_t chosen = 0; chosen < (1U << all.size()); ++chosen) {
        if (static_cast<std::size_t>(std::popcount(chosen)) > most || (chosen >> (all.size() - 1)) == 0) continue;
        Sizes_ buckets;
        for (std::size_t i = 0; i < all.size(); ++i)
            if ((chosen >> i) & 1U) buckets.push_back(all[i]);
        least = std::min(least, padding_of(sizes, buckets).added);
    }
    return least;
}

TEST(Learn, NoOtherChoiceIsBetter)
{
    std::minstd_rand random(3);
    for (int round = 0; round < 60; ++round) {
        Histogram sizes;
        while (sizes.size() < 9) sizes[1 + static_cast<std::int64_t>(random() % 100)] = 1 + random() % 50;
        const auto most = static_cast<std::uint32_t>(1 + random() % 5);
        const auto buckets = learn(sizes, wish(most));
        EXPECT_LE(buckets.size(), most);
        EXPECT_DOUBLE_EQ(padding_of(sizes, buckets).added, least_padding(sizes, most));
    }
}

TEST(Learn, ManySizesTakeBoundedTime)
{
    Histogram sizes;
    for (std::int64_t size = 1; size <= 16'000; ++size) sizes[size * 1001] = 1;
    const auto buckets = learn(sizes, wish(8));
    ASSERT_EQ(buckets.size(), 8U);
    EXPECT_GE(buckets.back(), 16'000 * 1001);
    EXPECT_LT(padding_of(sizes, buckets).share(), 0.2);
}

TEST(Buckets, HoldWhatIsNotLarger)
{
    const Sizes_ buckets{16, 32};
    EXPECT_EQ(bucket_for(buckets, 0), 16);
    EXPECT_EQ(bucket_for(buckets, 16), 16);
    EXPECT_EQ(bucket_for(buckets, 17), 32);
    EXPECT_EQ(bucket_for(buckets, 33), std::nullopt);
    EXPECT_EQ(bucket_for({}, 1), std::nullopt);
}

TEST(Buckets, SizesAreRoundedUpWithinWhatASizeCanBe)
{
    EXPECT_EQ(rounded(0, 16), 0);
    EXPECT_EQ(rounded(17, 16), 32);
    EXPECT_EQ(rounded(k_largest_size, 1), k_largest_size);
    EXPECT_EQ(rounded(k_largest_size, 3), std::nullopt);
    EXPECT_EQ(rounded(std::numeric_limits<std::int64_t>::max(), 16), std::nullopt);
}

TEST(Buckets, ThatWereHitAndWhatTheyAddedIsTold)
{
    const Calls calls = total(test::sample_profile()); // 17 padded to 32 (3 calls), 5 padded to 16 (1), 17 unpadded (1)
    EXPECT_THAT(ran_with(calls, {"tokens", 0}), ElementsAre(testing::Pair(16, 1U), testing::Pair(32, 3U)));
    EXPECT_DOUBLE_EQ(padding_of(calls, {"tokens", 0}).asked, 3 * 17 + 5);
    EXPECT_DOUBLE_EQ(padding_of(calls, {"tokens", 0}).added, 3 * 15 + 11);
    EXPECT_TRUE(ran_with(calls, {"logits", 0}).empty());
    EXPECT_EQ(padding_of(calls, {"logits", 0}).share(), 0);
}

TEST(Buckets, StayAsLongAsTheyServe)
{
    const Histogram before{{10, 100}, {50, 100}};
    const auto learnt = learn(before, wish(2));
    EXPECT_TRUE(still_serve(learnt, learn(before, wish(2)), before, wish(2)));
    Histogram now{{10, 200}, {49, 3}, {50, 200}};
    EXPECT_TRUE(still_serve(learnt, learn(now, wish(2)), now, wish(2))) << "hardly anything is padded";
    now[100] = 1;
    EXPECT_FALSE(still_serve(learnt, learn(now, wish(2)), now, wish(2))) << "no bucket holds 100";
    const Histogram other{{20, 100}, {50, 1}};
    EXPECT_FALSE(still_serve(learnt, learn(other, wish(2)), other, wish(2))) << "20 is padded to 50";
    EXPECT_FALSE(still_serve(learnt, learnt, before, wish(1))) << "too many";
    EXPECT_FALSE(still_serve(learnt, learnt, before, wish(2, 16))) << "no multiples";
    EXPECT_FALSE(still_serve({}, learnt, before, wish(2)));
}

} // namespace
} // namespace warmgraph::profile::buckets_test
