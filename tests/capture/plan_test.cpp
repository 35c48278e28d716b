// Makes the plan of a first call from values alone, without a device and without files.

#include "matchers.hpp"
#include "warmgraph/call/plan.hpp"

namespace warmgraph::test::plan_test {
namespace {

using cachefmt::EntryHeader;
using cachefmt::EntryKind;
using cachefmt::Role;
using Action = Plan::Action;

class PlanTest : public testing::Test {
protected:
    static cachefmt::Guards guards(const std::string& driver = "1.9", std::uint32_t alignment = 128)
    {
        cachefmt::Guards result;
        result.facts = {{"backend", "fake", Role::must_match}, {"driver.version", driver, Role::must_match}};
        result.tensors = {{"x", DType::f32, {4}, {1}, "fake:0", alignment, 0}};
        return result;
    }
    static EntryHeader header(const cachefmt::Guards& guards, EntryKind kind = EntryKind::graph)
    {
        EntryHeader result;
        result.key = {{"toy", "rank", "f"}, cachefmt::guards_digest(guards)};
        result.kind = kind;
        result.guards = guards;
        if (kind == EntryKind::tombstone) {
            result.info.reason = "recompiled";
            result.info.difference = {"node 3: grid", "node 4: block"};
        }
        return result;
    }
    static store::Variant on_disk(EntryHeader header)
    {
        store::Variant result;
        result.guards_digest = header.key.guards_digest;
        result.header = std::move(header);
        return result;
    }
    static store::Variant damaged(ErrorCode code = ErrorCode::corrupt)
    {
        store::Variant result;
        result.guards_digest = sha256(Bytes(1));
        result.header = fail(code, "its header digest does not match");
        return result;
    }
    [[nodiscard]] Situation situation() const { return {.function = "toy/f", .now = now, .policy = policy}; }
    [[nodiscard]] Plan plan() { return plan(situation()); }
    [[nodiscard]] Plan plan(const Situation& of)
    {
        exact_reads = list_reads = 0;
        return decide(of, {[this]() -> store::Header {
                               ++exact_reads;
                               return exact ? std::make_shared<const EntryHeader>(*exact) : nullptr;
                           },
                           [this]() -> Result<std::vector<store::Variant>> {
                               ++list_reads;
                               return all;
                           }});
    }
    cachefmt::Guards now = guards();
    Policy policy = Policy::read_write;
    std::optional<EntryHeader> exact;
    Result<std::vector<store::Variant>> all;
    int exact_reads = 0, list_reads = 0;
};

TEST_F(PlanTest, ReplaysTheEntryUnderTheseVeryGuardsAndListsNothing)
{
    exact = header(now);
    for (const Policy each : {Policy::read_write, Policy::read_only, Policy::require_hit}) {
        policy = each;
        const Plan decided = plan();
        EXPECT_EQ(decided.action, Action::replay);
        EXPECT_EQ(decided.entries, std::vector{exact->key});
        EXPECT_EQ(decided.reason, "");
        EXPECT_EQ(list_reads, 0);
    }
}

TEST_F(PlanTest, RecordsWhereThereIsNothing)
{
    const Plan decided = plan();
    EXPECT_EQ(decided.action, Action::record);
    EXPECT_EQ(decided.reason, "no entry");
    EXPECT_THAT(decided.entries, IsEmpty());
    EXPECT_TRUE(decided.lasts);
}

TEST_F(PlanTest, AMissSaysWhatTheNearestVariantHasOtherwise)
{
    now = guards("2.0", 128);
    auto far = guards("1.8", 256);
    all->push_back(on_disk(header(far)));
    all->push_back(on_disk(header(guards("1.9"))));
    all->push_back(damaged());
    const MissAnalysis analysis = plan().analysis;
    EXPECT_EQ(analysis.variants, 2U) << "that could be read";
    EXPECT_EQ(analysis.nearest, cachefmt::guards_digest(guards("1.9")));
    ASSERT_EQ(analysis.differences.size(), 1U);
    EXPECT_EQ(analysis.differences[0].fact, "driver.version");
    EXPECT_GT(analysis.agree, 1U);
    EXPECT_EQ(analysis.word, "driver.version");
}

TEST_F(PlanTest, OfTwoThatAreEquallyNearTheMostRecentIsNamed)
{
    now = guards("2.0");
    auto older = on_disk(header(guards("1.8"))), newer = on_disk(header(guards("1.9")));
    newer.last_used = older.last_used + std::chrono::hours(1);
    for (const bool swapped : {false, true}) {
        all = std::vector{swapped ? newer : older, swapped ? older : newer};
        EXPECT_EQ(plan().analysis.nearest, cachefmt::guards_digest(guards("1.9")));
    }
}

TEST_F(PlanTest, AReasonForStatisticsIsOneOfFewWords)
{
    EXPECT_EQ(plan().analysis.word, "no_entry");
    all->push_back(damaged());
    EXPECT_EQ(plan().analysis.word, "unreadable");
    now.facts.push_back({"env.MY_OWN_VARIABLE", "1", Role::must_match});
    all = std::vector{on_disk(header(guards()))};
    EXPECT_EQ(plan().analysis.word, "env") << "names that users give would make too many";
    now = guards();
    now.tensors[0].sizes = {8};
    EXPECT_EQ(plan().analysis.word, "input");
    exact = header(now, EntryKind::tombstone);
    EXPECT_EQ(plan().analysis.word, "recompiled");
    policy = Policy::refresh;
    EXPECT_EQ(plan().analysis.word, "refresh");
}

TEST_F(PlanTest, RunsItAsItIsWhereNothingMayBeRecorded)
{
    for (const Policy each : {Policy::read_only, Policy::require_hit}) {
        policy = each;
        const Plan decided = plan();
        EXPECT_EQ(decided.action, Action::run_as_it_is);
        EXPECT_EQ(decided.reason, "no entry");
        EXPECT_TRUE(decided.lasts);
    }
}

TEST_F(PlanTest, NeitherPolicyOffNorAFolderThatIsOffReadsAHeader)
{
    exact = header(now);
    all->push_back(on_disk(header(now)));
    policy = Policy::off;
    const Plan off = plan();
    EXPECT_EQ(off.action, Action::run_as_it_is);
    EXPECT_EQ(off.reason, "policy off");
    EXPECT_EQ(exact_reads + list_reads, 0);
    policy = Policy::read_write;
    Situation without = situation();
    without.caching_is_off = "the folder is a file";
    const Plan disabled = plan(without);
    EXPECT_EQ(disabled.action, Action::run_as_it_is);
    EXPECT_EQ(disabled.reason, "caching is off: the folder is a file");
    EXPECT_EQ(exact_reads + list_reads, 0);
}

TEST_F(PlanTest, RefreshRecordsWhatIsThereAndReplaysItWithoutACallable)
{
    exact = header(now);
    policy = Policy::refresh;
    EXPECT_TRUE(refreshes(situation()));
    const Plan anew = plan();
    EXPECT_EQ(anew.action, Action::record);
    EXPECT_EQ(anew.reason, "policy refresh");
    Situation loaded = situation();
    loaded.has_callable = false;
    EXPECT_FALSE(refreshes(loaded));
    EXPECT_EQ(plan(loaded).action, Action::replay);
}

TEST_F(PlanTest, WithoutACallableAMissIsNeverRecorded)
{
    Situation loaded = situation();
    loaded.has_callable = false;
    const Plan decided = plan(loaded);
    EXPECT_EQ(decided.action, Action::run_as_it_is);
    EXPECT_EQ(decided.reason, "no entry");
}

TEST_F(PlanTest, BesideARecordingItRunsAsItIsAndTheReasonPasses)
{
    Situation beside = situation();
    beside.has_pending = true;
    const Plan decided = plan(beside);
    EXPECT_EQ(decided.action, Action::run_as_it_is);
    EXPECT_FALSE(decided.lasts) << "the next call asks again";
    EXPECT_THAT(decided.reason, HasSubstr("another call of it is being recorded"));
    exact = header(now);
    EXPECT_EQ(plan(beside).action, Action::replay) << "what is there is used all the same";
    exact.reset();
    beside.policy = Policy::read_only;
    EXPECT_TRUE(plan(beside).lasts) << "nothing would be recorded anyhow";
}

TEST_F(PlanTest, ATombstoneIsRefusedWithWhatDiffersAndTheCure)
{
    exact = header(now, EntryKind::tombstone);
    for (const Policy each : {Policy::read_write, Policy::read_only, Policy::require_hit}) {
        policy = each;
        const Plan decided = plan();
        EXPECT_EQ(decided.action, Action::refuse);
        EXPECT_THAT(decided.reason, AllOf(HasSubstr("recompiled"), HasSubstr("node 3: grid; node 4: block"),
                                          HasSubstr("`warmgraph clear --func toy/f`")));
        EXPECT_TRUE(decided.lasts);
    }
    policy = Policy::refresh;
    EXPECT_EQ(plan().action, Action::record) << "a refresh may find that it is one function again";
}

TEST_F(PlanTest, ReplaysOtherVariantsThatHoldHereInTheirOrder)
{
    // The entry was recorded with a weaker alignment than this call has, so it may be used.
    const auto weak = header(guards("1.9", 64)), weaker = header(guards("1.9", 32));
    all = std::vector{on_disk(weak), on_disk(header(guards("1.8"))), damaged(), on_disk(weaker)};
    const Plan decided = plan();
    EXPECT_EQ(decided.action, Action::replay);
    EXPECT_EQ(decided.entries, (std::vector{weak.key, weaker.key}));
    EXPECT_EQ(list_reads, 1);
}

TEST_F(PlanTest, ATombstoneAmongOtherVariantsCountsWhereNoGraphComesBeforeIt)
{
    const auto tombstone = header(guards("1.9", 64), EntryKind::tombstone);
    const auto graph = header(guards("1.9", 32));
    all = std::vector{on_disk(tombstone), on_disk(graph)};
    EXPECT_EQ(plan().action, Action::refuse);
    all = std::vector{on_disk(graph), on_disk(tombstone)};
    const Plan decided = plan();
    EXPECT_EQ(decided.action, Action::replay);
    EXPECT_EQ(decided.entries, std::vector{graph.key});
    all = std::vector{on_disk(header(guards("1.8"), EntryKind::tombstone))};
    EXPECT_EQ(plan().action, Action::record) << "one of other guards says nothing";
}

TEST_F(PlanTest, ANewerDriverIsAcceptedWhereThatIsAllowed)
{
    const auto older = header(guards("1.8"));
    all = std::vector{on_disk(older)};
    const Plan strict = plan();
    EXPECT_EQ(strict.action, Action::record);
    EXPECT_THAT(strict.reason, AllOf(HasSubstr("1 variant on disk, the nearest differs: "),
                                     HasSubstr("driver.version 1.8"), HasSubstr("1.9 now")));
    Situation relaxed = situation();
    relaxed.relaxation.driver = guards::VersionRule::same_or_newer;
    EXPECT_EQ(plan(relaxed).entries, std::vector{older.key});
}

TEST_F(PlanTest, AMissIsExplainedByTheNearestVariant)
{
    auto far = guards("1.7");
    far.tensors[0].sizes = {8};
    far.tensors[0].dtype = DType::i32;
    all = std::vector{on_disk(header(far)), on_disk(header(guards("1.8"))), damaged()};
    EXPECT_THAT(plan().reason, AllOf(HasSubstr("2 variants on disk"), HasSubstr("driver.version 1.8"),
                                     Not(HasSubstr("more")), HasSubstr("cannot be used")))
        << "the damaged one may be the one that was wanted";
}

TEST_F(PlanTest, DamagedHeadersAloneAreTheReason)
{
    all = std::vector{damaged()};
    const Plan decided = plan();
    EXPECT_EQ(decided.action, Action::record) << "it is replaced in the same run";
    EXPECT_THAT(decided.reason, AllOf(HasSubstr(short_hex(sha256(Bytes(1)))),
                                      HasSubstr("cannot be used: its header digest does not match")));
    policy = Policy::read_only;
    EXPECT_EQ(plan().action, Action::run_as_it_is);
}

TEST_F(PlanTest, AHeaderUnderThisDigestThatDoesNotHoldIsNotReplayed)
{
    exact = header(guards("1.8")); // the file of another entry under this name
    const Plan decided = plan();
    EXPECT_EQ(decided.action, Action::record);
    EXPECT_EQ(list_reads, 1);
}

TEST_F(PlanTest, AFolderThatCannotBeListedIsAMissWithItsReason)
{
    all = fail(ErrorCode::permission_denied, "permission denied");
    const Plan decided = plan();
    EXPECT_EQ(decided.action, Action::record);
    EXPECT_EQ(decided.reason, "permission denied");
}

/// A function that guards the distance between its tensors has an entry for each distance, and no entry for tensors
/// without a distance.
TEST_F(PlanTest, AnEntryForAnotherDistanceIsNotReplayed)
{
    now.tensors.push_back({"y", DType::f32, {4}, {1}, "fake:0", 128, 0, 128});
    now.tensors[0].distance = 0;
    const auto here = header(now);
    auto other = now;
    other.tensors[1].distance = 256;
    all = std::vector{on_disk(header(other))};
    EXPECT_EQ(plan().action, Action::record);
    EXPECT_THAT(plan().reason, HasSubstr("input y: distance in its group"));
    all->push_back(on_disk(here));
    EXPECT_EQ(plan().entries, std::vector{here.key});
    auto any = now; // guards of a function that does not guard the distance
    for (auto& tensor : any.tensors) tensor.distance.reset();
    all = std::vector{on_disk(header(any))};
    EXPECT_THAT(plan().entries, SizeIs(1));
}

} // namespace
} // namespace warmgraph::test::plan_test
