// Tests the shape profile of a function: sizes are counted, joined between processes, used to learn buckets, and
// recorded ahead. It can also be switched off.
#include <fstream>

#include "cache/cache_impl.hpp"
#include "profile_fixture.hpp"
#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::test::function_test {
namespace {

class Profiled : public ProfileTest {
protected:
    /// Starts a new process that makes calls with these sizes.
    void start(const std::vector<std::int64_t>& sizes, const Spec& spec)
    {
        Cache cache{options()};
        Function f = wrap(cache, spec);
        for (const std::int64_t size : sizes) EXPECT_TRUE(call(f, size).is_right) << size;
    }
    /// The sizes of x in the only profile of the folder.
    [[nodiscard]] profile::Histogram stored() const
    {
        if (profiles().size() != 1) return {};
        const auto bytes = file_bytes(profiles()[0]);
        const auto read = profile::decode(std::as_bytes(std::span{bytes}));
        EXPECT_TRUE(read) << read.error().message;
        return read ? profile::histogram(profile::total(*read), {"x", 0}) : profile::Histogram{};
    }
};

TEST_F(Profiled, CountsTheSizesThatWereCalled)
{
    Cache cache{options()};
    Function f = wrap(cache, vector_spec());
    for (const std::int64_t size : {16, 32, 16, 16}) static_cast<void>(call(f, size));
    const auto shapes = f.shapes();
    ASSERT_EQ(shapes.size(), 2U);
    EXPECT_EQ(shapes[0].sizes.at("x"), std::vector<std::int64_t>{16});
    EXPECT_EQ(shapes[0].calls, 3U);
    EXPECT_EQ(shapes[1].calls, 1U);
    EXPECT_THAT(shapes[0].ran, IsEmpty());
}

TEST_F(Profiled, KeepsOneFileOfAllProcesses)
{
    start({16, 32, 16}, vector_spec());
    start({16, 48}, vector_spec());
    EXPECT_EQ(profiles().size(), 1U);
    EXPECT_THAT(stored(), ElementsAre(testing::Pair(16, 3U), testing::Pair(32, 1U), testing::Pair(48, 1U)));
}

TEST_F(Profiled, RanksHaveOneProfile)
{
    for (const int rank : {0, 1}) {
        CacheOptions of_rank = options();
        of_rank.world_size = 2;
        of_rank.global_rank = rank;
        Cache cache{of_rank};
        Function f = wrap(cache, vector_spec());
        static_cast<void>(call(f, 16));
    }
    EXPECT_THAT(stored(), ElementsAre(testing::Pair(16, 2U)));
}

TEST_F(Profiled, OfDeclaredSizesAloneThereIsNoFile)
{
    start({k_count, k_count}, vector_spec());
    EXPECT_THAT(profiles(), IsEmpty());
}

TEST_F(Profiled, AFunctionThatIsWrappedAgainGoesOnCounting)
{
    {
        Cache cache{options()};
        for (int i = 0; i < 3; ++i) {
            Function f = wrap(cache, vector_spec());
            static_cast<void>(call(f, 16));
        }
    }
    EXPECT_THAT(stored(), ElementsAre(testing::Pair(16, 3U)));
}

TEST_F(Profiled, TenThousandSizesAreBounded)
{
    Cache cache{options()};
    Spec spec = vector_spec();
    spec.policy = Policy::off; // with this policy, nothing is recorded
    Function f = wrap(cache, spec);
    const Buffer x = floats(0, 10'000), y = floats(0, 10'000);
    for (std::int64_t size = 1; size <= 10'000; size += 13)
        f({{"x", Tensor{x, f32, {size}, {}}}, {"y", Tensor{y, f32, {size}, {}}}});
    EXPECT_EQ(f.shapes().size(), profile::k_most_shapes);
}

TEST_F(Profiled, TheFirstStartLearnsAndRecordsTheSecondReplays)
{
    const std::vector<std::int64_t> sizes{3, 5, 9, 17, 18, 20, 33, 40, 41, 60};
    {
        Cache cache{options()};
        Function f = wrap(cache, spec_of({learnt(3)}));
        for (const std::int64_t size : sizes) {
            const CallResult called = call(f, size);
            EXPECT_EQ(called.outcome, Outcome::eager) << "there are no buckets yet";
            EXPECT_TRUE(called.is_right);
        }
        EXPECT_THAT(f.report().reason, HasSubstr("no buckets are learned yet"));
        EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 0U);
        const ProfileRecording done = cache.record_profile(f, maker());
        EXPECT_EQ(done.shapes, 3U);
        EXPECT_EQ(done.recorded, 3U);
        EXPECT_THAT(done.problems, IsEmpty());
        EXPECT_EQ(done.why_not, "");
        EXPECT_EQ(f.buckets()[0].size(), 3U);
        EXPECT_EQ(f.buckets()[0].back(), 60);
        for (const std::int64_t size : sizes) EXPECT_EQ(call(f, size).outcome, Outcome::replayed);
        for (const ProfiledShape& shape : f.shapes()) EXPECT_LE(shape.calls, 2U) << "what is recorded ahead is no call";
    }
    Cache cache{options(Policy::require_hit)};
    Function f = wrap(cache, spec_of({learnt(3)}));
    for (const std::int64_t size : sizes) {
        const CallResult called = call(f, size);
        EXPECT_EQ(called.outcome, Outcome::replayed);
        EXPECT_TRUE(called.is_right);
    }
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 0U);
}

TEST_F(Profiled, WhatALaterStartFindsProfiledItLearnsByItself)
{
    start({3, 5, 30}, spec_of({learnt(2)}));
    EXPECT_THAT(entries(), IsEmpty());
    Cache cache{options()};
    Function f = wrap(cache, spec_of({learnt(2)}));
    EXPECT_EQ(call(f, 4).outcome, Outcome::recorded);
    EXPECT_THAT(f.buckets(), ElementsAre(ElementsAre(5, 30)));
    EXPECT_EQ(call(f, 3).outcome, Outcome::replayed);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 1U);
}

TEST_F(Profiled, RecordsSizesAsTheyCameWhereNothingIsPadded)
{
    Spec spec = vector_spec();
    {
        Cache cache{options()};
        spec.policy = Policy::read_only;
        Function f = wrap(cache, spec);
        for (const std::int64_t size : {16, 32, 16, 48}) static_cast<void>(call(f, size));
    }
    spec.policy.reset();
    Cache cache{options()};
    Function f = wrap(cache, spec);
    const ProfileRecording done = cache.record_profile(f, maker(), 2);
    EXPECT_EQ(done.recorded, 2U);
    ASSERT_EQ(m_asked.size(), 2U);
    EXPECT_EQ(m_asked[0], 16) << "the most frequent first";
    EXPECT_EQ(call(f, 16).outcome, Outcome::replayed);
    const ProfileRecording again = cache.record_profile(f, maker());
    EXPECT_EQ(again.shapes, 3U);
    EXPECT_EQ(again.replayed, 2U);
    EXPECT_EQ(again.recorded, 1U);
}

TEST_F(Profiled, RecordsOnDemandToo)
{
    start({3, 5, 30}, spec_of({learnt(2)}));
    CacheOptions later = options();
    later.record = RecordWhen::on_demand;
    Cache cache{later};
    Function f = wrap(cache, spec_of({learnt(2)}));
    EXPECT_EQ(cache.record_profile(f, maker()).recorded, 2U);
}

TEST_F(Profiled, ValuesAreVariantsOfTheirOwn)
{
    Spec spec = vector_spec();
    spec.values = {scalar("mode", i32)};
    Cache cache{options()};
    Function f = wrap(cache, spec);
    const Buffer x = floats(0), y = floats(0);
    for (const int mode : {1, 2, 2})
        f({{"x", Tensor{x, f32, {16}, {}}}, {"y", Tensor{y, f32, {16}, {}}}, {"mode", mode}});
    const auto shapes = f.shapes();
    ASSERT_EQ(shapes.size(), 2U);
    EXPECT_EQ(shapes[0].values.at("mode"), "2");
    EXPECT_EQ(shapes[0].calls, 2U);
}

TEST_F(Profiled, SwitchedOffThereIsNone)
{
    for (const bool by_environment : {false, true}) {
        CacheOptions off = options();
        if (by_environment)
            ::setenv("WARMGRAPH_PROFILE", "off", 1);
        else
            off.profile = false;
        Cache cache{off};
        ::unsetenv("WARMGRAPH_PROFILE");
        const std::string name = by_environment ? "by_environment" : "by_option";
        Function f = wrap(cache, spec_of({learnt(2, 16)}), name);
        EXPECT_EQ(call(f, 17).outcome, Outcome::recorded) << "sizes as they come";
        EXPECT_EQ(m_ran, std::vector<std::int64_t>{32}) << "what the function needs holds all the same";
        EXPECT_THAT(f.shapes(), IsEmpty());
        EXPECT_THAT(cache.record_profile(f, maker()).why_not, HasSubstr("no profile is kept"));
    }
    EXPECT_THAT(profiles(), IsEmpty());
}

TEST_F(Profiled, AnUnknownSettingIsTheDefault)
{
    ::setenv("WARMGRAPH_PROFILE", "maybe", 1);
    start({3}, spec_of({learnt(2)}));
    ::unsetenv("WARMGRAPH_PROFILE");
    EXPECT_EQ(profiles().size(), 1U);
}

TEST_F(Profiled, DamageCostsWhatWasLearntAndNothingElse)
{
    start({3, 5, 30}, spec_of({learnt(2)}));
    ASSERT_EQ(profiles().size(), 1U);
    std::ofstream(profiles()[0]) << R"({"format": 1, "parts": "nonsense"})";
    Cache cache{options()};
    Function f = wrap(cache, spec_of({learnt(2)}));
    const CallResult called = call(f, 4);
    EXPECT_EQ(called.outcome, Outcome::eager) << "nothing is learnt yet";
    EXPECT_TRUE(called.is_right);
    EXPECT_GE(cache.statistics().cache_faults, 1U);
    EXPECT_EQ(cache.record_profile(f, maker()).recorded, 1U) << "what this process called";
}

TEST_F(Profiled, EditedBucketsAreUsed)
{
    start({3, 5, 30}, spec_of({learnt(2)}));
    {
        Cache cache{options()};
        Function f = wrap(cache, spec_of({learnt(2)}));
        static_cast<void>(call(f, 3)); // the buckets that were learnt are [5, 30]
    }
    const auto bytes = file_bytes(profiles().at(0));
    std::string text{bytes.begin(), bytes.end()};
    const std::string before = "\"buckets\":[5,30],\"decided\":\"";
    ASSERT_NE(text.find(before), std::string::npos) << text;
    text.replace(text.find(before), before.size(), "\"buckets\":[25,30],\"decided\":\"by hand, ");
    std::ofstream(profiles()[0]) << text;
    Cache cache{options()};
    Function f = wrap(cache, spec_of({learnt(2)}));
    static_cast<void>(call(f, 3));
    EXPECT_THAT(f.buckets(), ElementsAre(ElementsAre(25, 30))) << "though others would pad less";
}

TEST_F(Profiled, WhoeverMayNotRecordKeepsTheBucketsThatWereRecorded)
{
    start({3, 5, 30}, spec_of({learnt(2)}));
    start({3}, spec_of({learnt(2)})); // this start chooses the buckets [5, 30], and records the size 5
    start(std::vector<std::int64_t>(40, 12), spec_of({learnt(2)}));
    Cache cache{options(Policy::read_only)};
    Function f = wrap(cache, spec_of({learnt(2)}));
    EXPECT_TRUE(call(f, 3).is_right);
    EXPECT_THAT(f.buckets(), ElementsAre(ElementsAre(5, 30)));
    EXPECT_THAT(cache.record_profile(f, maker()).why_not, HasSubstr("does not let it record"));
}

TEST_F(Profiled, MisuseIsNamed)
{
    Cache cache{options()}, other{options()};
    Function f = wrap(cache, spec_of({learnt(2)}));
    Spec spec = vector_spec();
    spec.version = "1";
    Function loaded = cache.load("loaded", device, spec);
    EXPECT_EQ(thrown_by([&] { other.record_profile(f, maker()); })->code(), ErrorCode::invalid_argument);
    EXPECT_EQ(thrown_by([&] { cache.record_profile(loaded, maker()); })->code(), ErrorCode::invalid_argument);
    EXPECT_EQ(thrown_by([&] { cache.record_profile(f, {}); })->code(), ErrorCode::invalid_argument);
    static_cast<void>(call(f, 5));
    const Buffer x = floats(0), y = floats(0);
    const auto thrown = thrown_by(
        [&] { cache.record_profile(f, [&](const ProfiledShape&) { return std::vector<Arg>{{"x", x}, {"y", y}}; }); });
    EXPECT_THAT(message_of(thrown), HasSubstr("expected [5] as in the profile"));
    EXPECT_TRUE(call(f, 5).is_right) << "the rest works";
}

TEST_F(Profiled, AFolderThatWasDeletedIsNotMadeAgainForIt)
{
    {
        Cache cache{options()};
        Spec spec = vector_spec();
        spec.policy = Policy::read_only;
        Function f = wrap(cache, spec);
        EXPECT_TRUE(call(f, 16).is_right);
        // The thread that writes shapes may still make files. So the folder is removed again and again until it is
        // gone.
        for (std::error_code busy; std::filesystem::exists(dir.path() / "cache");)
            std::filesystem::remove_all(dir.path() / "cache", busy);
        EXPECT_TRUE(call(f, 32).is_right);
    }
    EXPECT_THAT(profiles(), IsEmpty());
}

TEST_F(Profiled, AFullDiskCostsTheProfileAlone)
{
    start({3, 5}, vector_spec());
    const auto folder = dir.path() / "cache" / "profile";
    std::filesystem::remove_all(folder);
    std::ofstream(folder) << "in the way";
    Cache cache{options()};
    Function f = wrap(cache, vector_spec());
    EXPECT_TRUE(call(f, 7).is_right);
    EXPECT_TRUE(call(f, 8).is_right);
}

} // namespace
} // namespace warmgraph::test::function_test
