// Tests CallOutcomes: the report, the misses and the verdicts.
#include "call_fixture.hpp"
#include "warmgraph/call/call_outcomes.hpp"

namespace warmgraph::test::outcomes_test {
namespace {

class OutcomesTest : public CallTest {
protected:
    [[nodiscard]] static FirstCall first_call(char name)
    {
        FirstCall result = new_first_call();
        result.digest = digest_of(name);
        return result;
    }
    Counters counters;
    RecordingPause pause;
    store::TouchedNames touched;
    int replays = 0;
    CallOutcomes outcomes{declare(),
                          {nullptr, std::make_shared<Programs>(nullptr, cachefmt::Trust{}, "it is off"), counters,
                           pause, touched, [this] { ++replays; }, 2}};
};

TEST_F(OutcomesTest, AreInTheReport)
{
    EXPECT_FALSE(outcomes.is_settled());
    const FirstCall one = first_call('a');
    EXPECT_EQ(outcomes.finish(one, Outcome::recorded, "no entry", Remember::no), Outcome::recorded);
    outcomes.end_report(one);
    EXPECT_TRUE(outcomes.is_settled());
    EXPECT_EQ(outcomes.report().function, "f");
    EXPECT_EQ(outcomes.report().outcome, Outcome::recorded);
    EXPECT_EQ(outcomes.report().reason, "no entry");
    EXPECT_EQ(outcomes.report().entry, short_hex(digest_of('a')));
    EXPECT_EQ(outcomes.report_as_it_is("its replay failed", nullptr), Outcome::eager);
    EXPECT_EQ(outcomes.report().entry, "");
}

TEST_F(OutcomesTest, ThatLastAreVerdictsUntilThereAreTooMany)
{
    outcomes.finish(first_call('a'), Outcome::refused, "", Remember::yes);
    outcomes.finish(first_call('b'), Outcome::eager, "", Remember::yes);
    outcomes.finish(first_call('c'), Outcome::eager, "", Remember::no);
    outcomes.finish(first_call('d'), Outcome::replayed, "", Remember::yes);
    EXPECT_EQ(outcomes.verdict(digest_of('a')), Outcome::refused); // now this verdict is the most recently used one
    EXPECT_FALSE(outcomes.verdict(digest_of('c')));
    EXPECT_FALSE(outcomes.verdict(digest_of('d')));
    outcomes.finish(first_call('e'), Outcome::eager, "", Remember::yes);
    EXPECT_FALSE(outcomes.verdict(digest_of('b')));
    EXPECT_TRUE(outcomes.verdict(digest_of('a')));
    outcomes.forget_verdicts();
    EXPECT_FALSE(outcomes.verdict(digest_of('a')));
}

TEST_F(OutcomesTest, OfMissesAreKeptTheNewestFirst)
{
    FirstCall first = first_call('a'), second = first_call('b');
    outcomes.count_miss({Plan::Action::record, {}, "no entry"}, "f", first);
    outcomes.finish(first, Outcome::recorded, "no entry", Remember::no);
    outcomes.count_miss({Plan::Action::run_as_it_is, {}, "another size"}, "f", second);
    outcomes.finish_thrown(second);
    const auto misses = outcomes.misses();
    ASSERT_EQ(misses.size(), 2U);
    EXPECT_EQ(misses[0].reason, "another size");
    EXPECT_EQ(misses[0].end, "thrown");
    EXPECT_EQ(misses[1].end, "recorded");
    EXPECT_EQ(counters.snapshot().of(ArtifactKind::entries).misses, 2U);
    EXPECT_EQ(counters.snapshot().of(ArtifactKind::entries).miss_reasons.front(), "f: no entry");
}

TEST_F(OutcomesTest, OfNobodysMissAreNotCounted)
{
    FirstCall half = first_call('a');
    outcomes.count_miss({Plan::Action::record, {}, "no entry"}, "", half);
    outcomes.finish(half, Outcome::recorded, "", Remember::no);
    EXPECT_TRUE(outcomes.misses().empty());
    EXPECT_EQ(counters.snapshot().of(ArtifactKind::entries).misses, 0U);
}

TEST_F(OutcomesTest, AreCounted)
{
    outcomes.count_replay();
    outcomes.count_recording(2.5);
    outcomes.count_recording(1.5, 0);
    outcomes.count_refusal("not_recordable");
    EXPECT_EQ(replays, 1);
    const KindStatistics entries = counters.snapshot().of(ArtifactKind::entries);
    EXPECT_EQ(entries.made, 1U);
    EXPECT_DOUBLE_EQ(entries.making_ms, 4);
    EXPECT_EQ(entries.refused, 1U);
}

} // namespace
} // namespace warmgraph::test::outcomes_test
