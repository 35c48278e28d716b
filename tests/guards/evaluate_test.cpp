#include <algorithm>

#include "matchers.hpp"
#include "sample_guards.hpp"
#include "warmgraph/guards/call_guard.hpp"

namespace warmgraph::guards::evaluate_test {
namespace {

using test::Mutation;
using test::sample_guards;

std::vector<std::string> names(const std::vector<Mismatch>& mismatches)
{
    std::vector<std::string> list;
    for (const Mismatch& mismatch : mismatches) list.push_back(mismatch.fact);
    return list;
}

TEST(Evaluate, AcceptsWhatWasRecorded) { EXPECT_THAT(evaluate(sample_guards(), sample_guards()), IsEmpty()); }

TEST(Evaluate, NamesEveryChangeMadeAlone)
{
    const Guards recorded = sample_guards();
    for (const Mutation& mutation : test::all_mutations(recorded)) {
        Guards now = recorded;
        mutation.apply(now);
        EXPECT_THAT(names(evaluate(recorded, now)), ElementsAre(mutation.fact));
        EXPECT_THAT(names(evaluate(now, recorded)),
                    Contains(mutation.fact).Times(mutation.fact.ends_with("alignment") ? 0 : 1));
    }
}

TEST(Evaluate, NamesBothOfEveryPairOfChanges)
{
    const Guards recorded = sample_guards();
    std::vector<Mutation> few = test::mutations_of_facts(recorded);
    std::erase_if(
        few, [](const Mutation& m) { return m.fact != "backend" && m.fact != "driver.version" && m.fact != "model"; });
    for (const Mutation& mutation : test::mutations_of_tensors(recorded))
        if (mutation.fact.starts_with("input kv:") || mutation.fact == "input kv_view: aliasing")
            few.push_back(mutation);
    for (const std::size_t i : {0, 2}) few.push_back(test::mutations_of_values()[i]);

    for (const Mutation& first : few) {
        for (const Mutation& second : few) {
            if (first.fact == second.fact) continue;
            // Removing a fact changes the indices of the facts after it. So the change that comes later in the list is
            // made first.
            Guards now = recorded;
            const bool in_order = first.fact > second.fact;
            (in_order ? first : second).apply(now);
            (in_order ? second : first).apply(now);
            EXPECT_THAT(names(evaluate(recorded, now)), UnorderedElementsAre(first.fact, second.fact));
        }
    }
}

TEST(Evaluate, OrdersMismatchesFactsThenTensorsThenValues)
{
    const Guards recorded = sample_guards();
    Guards now = recorded;
    now.values[0].bits = 3;
    now.tensors[0].dtype = DType::i64;
    now.facts[6].value = "1";
    now.facts[0].value = "cuda";
    EXPECT_THAT(names(evaluate(recorded, now)),
                ElementsAre("backend", "driver.version", "input token: dtype", "value layers"));
}

TEST(Evaluate, NeverComparesAdvisoryFacts)
{
    const Guards recorded = sample_guards();
    Guards now = recorded;
    for (Fact& fact : now.facts)
        if (fact.role == Role::advisory) fact.value = fact.name == "host" ? cachefmt::k_unknown : "other";
    EXPECT_THAT(evaluate(recorded, now), IsEmpty());
    std::erase_if(now.facts, [](const Fact& fact) { return fact.role == Role::advisory; });
    EXPECT_THAT(evaluate(recorded, now), IsEmpty());
}

TEST(Evaluate, ComparesAFactThatOnlyTheEntryCallsAdvisory)
{
    Guards recorded = sample_guards();
    recorded.facts[0] = {"backend", "cuda", Role::advisory};
    EXPECT_THAT(names(evaluate(recorded, sample_guards())), ElementsAre("backend"));
}

TEST(Evaluate, NeverMatchesUnknownEvenAgainstItself)
{
    Guards guards = sample_guards();
    guards.facts[3].value = cachefmt::k_unknown;
    const std::vector<Mismatch> mismatches = evaluate(guards, guards);
    ASSERT_THAT(names(mismatches), ElementsAre("device.architecture"));
    EXPECT_EQ(mismatches[0].recorded, "unknown");
    EXPECT_EQ(mismatches[0].now, "unknown");
    EXPECT_THAT(mismatches[0].cure, HasSubstr("warmgraph doctor"));
    EXPECT_THAT(evaluate(guards, guards, {VersionRule::same_or_newer}), SizeIs(1));
}

TEST(Evaluate, AcceptsAStrongerAlignment)
{
    const Guards recorded = sample_guards();
    Guards now = recorded;
    for (TensorSpec& tensor : now.tensors) tensor.alignment = cachefmt::k_max_alignment;
    EXPECT_THAT(evaluate(recorded, now), IsEmpty());
}

TEST(Evaluate, ReportsEachPropertyOfATensorByItself)
{
    const Guards recorded = sample_guards();
    Guards now = recorded;
    now.tensors[1] = {"kv", DType::f32, {2, 4}, {4, 1}, "opencl:1", 16, 0};
    EXPECT_THAT(names(evaluate(recorded, now)),
                ElementsAre("input kv: dtype", "input kv: sizes", "input kv: strides", "input kv: device",
                            "input kv: alignment", "input kv: aliasing"));
    const Mismatch sizes = evaluate(recorded, now)[1];
    EXPECT_EQ(sizes.recorded, "[2,4,8]");
    EXPECT_EQ(sizes.now, "[2,4]");
}

TEST(Evaluate, ComparesTheDistanceOnlyWhereTheEntryAsksForIt)
{
    const Guards recorded = sample_guards();
    Guards elsewhere = recorded;
    elsewhere.tensors[2].distance = 192;
    const auto mismatches = evaluate(recorded, elsewhere);
    ASSERT_THAT(names(mismatches), ElementsAre("input kv_view: distance in its group"));
    EXPECT_EQ(mismatches[0].recorded, "64 bytes");
    EXPECT_EQ(mismatches[0].now, "192 bytes");
    Guards anywhere = recorded;
    forget_distances(anywhere.tensors);
    EXPECT_THAT(evaluate(anywhere, recorded), IsEmpty());
    EXPECT_THAT(evaluate(anywhere, elsewhere), IsEmpty());
    EXPECT_EQ(compared_count(recorded, elsewhere), compared_count(anywhere, elsewhere) + 2);
}

TEST(Evaluate, ReportsMissingExtraAndSwappedTensorsWithoutBlamingTheirNeighbours)
{
    const Guards recorded = sample_guards();
    Guards now = recorded;
    now.tensors.erase(now.tensors.begin());
    now.tensors[0].alias_group = now.tensors[1].alias_group = 0;
    now.tensors[2].alias_group = 2;
    const std::vector<Mismatch> missing = evaluate(recorded, now);
    ASSERT_THAT(names(missing), ElementsAre("input token"));
    EXPECT_EQ(missing[0].recorded, "i32[1]");
    EXPECT_EQ(missing[0].now, "(absent)");
    EXPECT_EQ(evaluate(now, recorded)[0].recorded, "(absent)");

    Guards swapped = recorded;
    std::swap(swapped.tensors[0], swapped.tensors[3]);
    swapped.tensors[0].alias_group = 0;
    swapped.tensors[3].alias_group = 3;
    EXPECT_THAT(names(evaluate(recorded, swapped)), ElementsAre("inputs: order"));
}

TEST(Evaluate, PairsRepeatedNamesInOrder)
{
    Guards recorded;
    recorded.tensors = {{"x", DType::f32, {1}, {1}, "opencl:0", 1, 0}, {"x", DType::i32, {2}, {1}, "opencl:0", 1, 1}};
    EXPECT_THAT(evaluate(recorded, recorded), IsEmpty());
    Guards now = recorded;
    now.tensors.push_back({"x", DType::u8, {3}, {1}, "opencl:0", 1, 2});
    EXPECT_THAT(names(evaluate(recorded, now)), ElementsAre("input x"));
}

TEST(Evaluate, RelaxesDriverAndRuntimeOnlyAndOnlyUpwards)
{
    const Guards recorded = sample_guards();
    const Relaxation relaxed{VersionRule::same_or_newer};
    Guards newer = recorded;
    newer.facts[6].value = "580.160.01";
    newer.facts[13].value = "13.1";
    EXPECT_THAT(names(evaluate(recorded, newer)), ElementsAre("driver.version", "runtime.version"));
    EXPECT_THAT(evaluate(recorded, newer, relaxed), IsEmpty());
    EXPECT_THAT(names(evaluate(newer, recorded, relaxed)), ElementsAre("driver.version", "runtime.version"));
    newer.facts[11].value = "13.0.3";
    EXPECT_THAT(names(evaluate(recorded, newer, relaxed)), ElementsAre("library.cublas"));
}

TEST(Evaluate, GivesTheCureThatHelps)
{
    const Guards recorded = sample_guards();
    Guards now = recorded;
    const auto cure_of = [&](std::size_t fact, const std::string& value) {
        now = recorded;
        now.facts[fact].value = value;
        return evaluate(recorded, now).at(0).cure;
    };
    EXPECT_EQ(cure_of(6, "581.0"), "relax with accept_newer_driver (same or newer)");
    EXPECT_THAT(cure_of(6, "580.126.20"), HasSubstr("older than recorded"));
    EXPECT_EQ(cure_of(1, "feed"), "the binary was rebuilt: record again, or set Spec::version");
    EXPECT_THAT(cure_of(2, "f16"), HasSubstr("recorded configuration"));
    EXPECT_EQ(cure_of(7, "8"), "set OMP_NUM_THREADS=4, or record again");
    now.facts[7].value = "(unset)";
    EXPECT_EQ(evaluate(now, recorded).at(0).cure, "unset OMP_NUM_THREADS, or record again");
}

TEST(Evaluate, ListsAgreeAsOneTextAndAMismatchNamesWhatIsInThem)
{
    Guards recorded = sample_guards();
    recorded.facts.insert(recorded.facts.begin() + 2, {"config.a *", "a.depth\t16\na.scale\t2.0\na.width\t4"});
    Guards now = recorded;
    EXPECT_TRUE(evaluate(recorded, now).empty());
    EXPECT_EQ(compared_count(recorded, now), compared_count(sample_guards(), sample_guards()) + 3);

    now.facts[2].value = "a.depth\t16\na.scale\t3.0\na.heads\t8";
    EXPECT_THAT(names(evaluate(recorded, now)), ElementsAre("config.a.heads", "config.a.scale", "config.a.width"));
    EXPECT_EQ(evaluate(recorded, now).at(1).recorded, "2.0");
    EXPECT_EQ(evaluate(recorded, now).at(1).now, "3.0");
    now.facts.erase(now.facts.begin() + 2);
    EXPECT_EQ(evaluate(recorded, now).size(), 3U);
    EXPECT_EQ(evaluate(now, recorded).size(), 3U);
}

TEST(Evaluate, FactsAreTheSameInOneListOrInAnotherOrInNone)
{
    Guards whole, parts;
    whole.facts = {{"config.a *", "a\t1\nb\t2\nc\t3"}, {"driver", "5"}};
    parts.facts = {{"config.a", "1"}, {"config.z *", "b\t2\nc\t3"}, {"driver", "5"}};
    EXPECT_TRUE(evaluate(whole, parts).empty());
    EXPECT_TRUE(evaluate(parts, whole).empty());
    parts.facts[1].value = "b\t2\nc\t4";
    EXPECT_THAT(names(evaluate(whole, parts)), ElementsAre("config.c"));
    parts.facts[1].value = "b\t2\nc"; // not a list, but an ordinary fact whose name looks like the name of a list
    EXPECT_THAT(names(evaluate(whole, parts)), ElementsAre("config.b", "config.c", "config.z *"));
}

TEST(ComparedCount, CountsWhatEvaluateCompares)
{
    const Guards guards = sample_guards();
    EXPECT_EQ(compared_count(guards, guards), 13U + 4 * 6 + 2 + 2); // all facts except advisory ones, and two distances
    for (const Mutation& mutation : test::all_mutations(guards)) {
        Guards now = guards;
        mutation.apply(now);
        EXPECT_GE(compared_count(guards, now), evaluate(guards, now).size()) << mutation.fact;
    }
    EXPECT_EQ(compared_count({}, {}), 0U);
}

TEST(Summarize, GivesOneLineWithTheFirstAndTheNumberOfOthers)
{
    EXPECT_EQ(summarize({}), "");
    std::vector<Mismatch> list{{"driver.version", "580.159.04", "580.126.20", ""}};
    EXPECT_EQ(summarize(list), "driver.version 580.159.04 recorded, 580.126.20 now");
    list.resize(3);
    EXPECT_EQ(summarize(list), "driver.version 580.159.04 recorded, 580.126.20 now; and 2 more");
    EXPECT_EQ(summarize({{"env.X", "a\n\x1b[31mb", "c", ""}}), "env.X a\\x0a\\x1b[31mb recorded, c now");
}

TEST(Canonicalize, SortsAndKeepsTheLastOfEqualNames)
{
    std::vector<Fact> facts{{"b", "1", Role::must_match}, {"a", "2", Role::must_match}, {"b", "3", Role::advisory}};
    canonicalize(facts);
    EXPECT_THAT(facts, ElementsAre(Fact{"a", "2", Role::must_match}, Fact{"b", "3", Role::advisory}));
}

} // namespace
} // namespace warmgraph::guards::evaluate_test
