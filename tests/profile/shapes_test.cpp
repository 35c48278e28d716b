#include <random>

#include "expect_error.hpp"
#include "sample_profile.hpp"

namespace warmgraph::profile::shapes_test {
namespace {

using test::empty_profile;
using test::prompt_of;
using test::sample_profile;

Profile joined(const Profile& a, const Profile& b) { return join(a, b).value(); }

/// The counts of one writer at one moment. At a later moment, the counts of the same writer include the earlier calls.
Profile moment_of(std::uint32_t writer, std::uint32_t moment)
{
    Profile profile = empty_profile();
    Part& part = profile.parts["writer-" + std::to_string(writer)];
    std::minstd_rand random(writer + 1);
    for (std::uint32_t at = 0; at <= moment; ++at) {
        part.last = fmt::format("2026-11-24T10:{:02}:{:02}Z", at, writer % 60);
        for (int i = 0; i < 40; ++i) count(part, prompt_of(static_cast<std::int64_t>(random() % 700)));
    }
    return profile;
}

/// A file with the counts of some random writers at random moments.
Profile some_moments(std::minstd_rand& random)
{
    Profile profile = empty_profile();
    for (int i = 0; i < 30; ++i)
        profile = joined(
            profile, moment_of(static_cast<std::uint32_t>(random() % 60), static_cast<std::uint32_t>(random() % 20)));
    return profile;
}

TEST(Shapes, AreCountedByWhatWasCalledAndWithWhatItRan)
{
    const Calls calls = total(sample_profile());
    EXPECT_EQ(calls.at(prompt_of(17, 32)), 3U);
    EXPECT_EQ(calls.at(prompt_of(5, 16)), 1U);
    EXPECT_EQ(calls.size(), 3U);
}

TEST(Shapes, TheMostFrequentOnesAreKept)
{
    Part part;
    for (int i = 0; i < 3; ++i) count(part, prompt_of(1));
    for (std::int64_t size = 0; size < 1'000'000; size += 7) count(part, prompt_of(size));
    EXPECT_EQ(part.calls.size(), k_most_shapes);
    EXPECT_EQ(part.calls.at(prompt_of(1)), 3U);
    EXPECT_EQ(part.total, 3U + 142'858U) << "also those of shapes that are left out";
}

TEST(Shapes, SayWhichDimensionsVary)
{
    const auto seen = dimensions_of(total(sample_profile()));
    ASSERT_EQ(seen.size(), 2U);
    EXPECT_EQ(to_text(seen[0].dimension), "logits[0]");
    EXPECT_FALSE(seen[0].varies());
    EXPECT_EQ(to_text(seen[1].dimension), "tokens[0]");
    EXPECT_TRUE(seen[1].varies());
    EXPECT_THAT(seen[1].sizes, ElementsAre(testing::Pair(5, 1U), testing::Pair(17, 4U)));
    EXPECT_EQ(histogram(total(sample_profile()), {"tokens", 0}), seen[1].sizes);
    EXPECT_TRUE(histogram(total(sample_profile()), {"tokens", 1}).empty());
}

TEST(Join, OfTheSameCountsTwiceDoublesNothing)
{
    const Profile profile = sample_profile();
    EXPECT_EQ(joined(profile, profile), profile);
    EXPECT_EQ(joined(joined(empty_profile(), profile), profile), profile);
}

TEST(Join, OfAWriterKeepsItsLaterCounts)
{
    const Profile early = moment_of(1, 2), late = moment_of(1, 5);
    EXPECT_EQ(joined(early, late), late);
    EXPECT_EQ(joined(late, early), late);
}

TEST(Join, AddsWritersUp)
{
    Profile a = empty_profile(), b = empty_profile();
    count(a.parts["a"], prompt_of(17));
    count(b.parts["b"], prompt_of(17));
    EXPECT_EQ(total(joined(a, b)).at(prompt_of(17)), 2U);
}

TEST(Join, GivesTheSameInEveryOrderAndHoweverOften)
{
    std::minstd_rand random(7);
    for (int round = 0; round < 3; ++round) {
        const Profile a = some_moments(random), b = some_moments(random), c = some_moments(random);
        EXPECT_EQ(joined(a, b), joined(b, a));
        EXPECT_EQ(joined(joined(a, b), c), joined(a, joined(b, c)));
        EXPECT_EQ(joined(joined(a, b), b), joined(a, b));
        EXPECT_EQ(joined(a, a), a);
    }
}

TEST(Join, KeepsWritersThatCountedLastAndThoseThatCountedMost)
{
    Profile all = empty_profile();
    Part& busy = all.parts["busy"];
    busy.last = "2020-01-01T00:00:00Z";
    for (int i = 0; i < 100; ++i) count(busy, prompt_of(17));
    for (int writer = 0; writer < 200; ++writer) {
        Profile one = empty_profile();
        Part& part = one.parts[fmt::format("job-{:03}", writer)];
        part.last = fmt::format("2026-11-24T10:00:00.{:03}Z", writer);
        count(part, prompt_of(writer));
        all = joined(all, one);
    }
    EXPECT_LE(all.parts.size(), k_most_last + k_most_busy);
    EXPECT_TRUE(all.parts.contains("busy"));
    EXPECT_TRUE(all.parts.contains("job-199"));
    EXPECT_FALSE(all.parts.contains("job-100"));
}

TEST(Join, TheLastChoiceOfBucketsStays)
{
    Profile early = sample_profile(), late = sample_profile();
    late.learnt[test::sample_wish()] = {"2026-11-25T00:00:00Z", {24}};
    EXPECT_EQ(joined(late, early).learnt.at(test::sample_wish()).buckets, std::vector<std::int64_t>{24});
    EXPECT_EQ(joined(early, late).learnt.at(test::sample_wish()).buckets, std::vector<std::int64_t>{24});
}

TEST(Join, OfDifferentFunctionsIsRefused)
{
    Profile other = empty_profile();
    other.function = "decode";
    other.key = key_of(other);
    EXPECT_TRUE(failed_with(join(empty_profile(), other), ErrorCode::invalid_argument));
}

TEST(ProfileKey, IsOfModelFunctionAndArguments)
{
    const Profile base = empty_profile();
    Profile counted = sample_profile();
    EXPECT_EQ(key_of(base), key_of(counted)) << "what was counted is no part of it";
    for (auto* const change :
         {+[](Profile& p) { p.model_info = "tiny_static_clgraphcache_0123456789ac"; },
          +[](Profile& p) { p.function = "decode"; }, +[](Profile& p) { p.arguments["tokens"] = "i64"; },
          +[](Profile& p) { p.arguments["mask"] = "i32"; }}) {
        Profile changed = base;
        change(changed);
        EXPECT_NE(key_of(base), key_of(changed));
    }
}

} // namespace
} // namespace warmgraph::profile::shapes_test
