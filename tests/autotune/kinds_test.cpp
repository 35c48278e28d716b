// Tests the kinds of objects in a cache: each kind can be switched off alone, and is counted alone.
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "tuning_fixture.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph::test::kinds_test {
namespace {

using Kinds = std::set<ArtifactKind>;
const Kinds k_all_kinds{ArtifactKind::entries, ArtifactKind::compiled, ArtifactKind::tuned, ArtifactKind::profiles};

Kinds all_but(ArtifactKind kind)
{
    Kinds kinds = k_all_kinds;
    kinds.erase(kind);
    return kinds;
}

class KindsTest : public TuningTest {
protected:
    struct Start {
        Outcome outcome = Outcome::eager;
        std::string reason;
        TuningReport tuning;
        Statistics statistics;
        std::string summary;
    };
    /// Starts a new process, which compiles nothing ahead, tunes a kernel and calls a function.
    [[nodiscard]] Start start(const std::optional<Kinds>& kinds = {})
    {
        CacheOptions how = options();
        how.kinds = kinds;
        Cache cache{how};
        Start result;
        result.tuning = tuner_of(cache, {.validation = TuningValidation::at_first_run}).tune(kernel()).report();
        const Program code = device.program("small", k_small_kernels);
        Spec spec = vector_spec();
        spec.code = {code};
        Function f = cache.wrap("add_one", device, spec,
                                [code](Recorder& r) { r.stream().launch(code, "add_one", k_launch, r["x"], r["y"]); });
        const Buffer x = floats(0), y = device.allocate(k_count * 4);
        result.outcome = f({{"x", x}, {"y", y}});
        EXPECT_EQ(read(y), read(floats(1)));
        result.reason = f.report().reason;
        result.statistics = cache.statistics();
        result.summary = cache.summary();
        return result;
    }
    void forget() const { std::filesystem::remove_all(dir.path() / "cache"); }
};

TEST_F(KindsTest, OfAKindThatIsOffNothingIsWritten)
{
    const std::map<ArtifactKind, std::string> extensions{
        {ArtifactKind::entries, ".wg"}, {ArtifactKind::compiled, ".compiled"}, {ArtifactKind::tuned, ".best_config"}};
    for (const auto& off : extensions) {
        forget();
        static_cast<void>(start(all_but(off.first)));
        for (const auto& [kind, extension] : extensions)
            EXPECT_EQ(files(extension).empty(), kind == off.first)
                << to_string(kind) << " without " << to_string(off.first);
    }
}

TEST_F(KindsTest, OfAKindThatIsOffNothingIsReadOrCountedAndTheOthersServe)
{
    EXPECT_EQ(start().outcome, Outcome::recorded);

    const Start no_graphs = start(all_but(ArtifactKind::entries));
    EXPECT_EQ(no_graphs.outcome, Outcome::eager);
    EXPECT_THAT(no_graphs.reason, HasSubstr("entries are switched off (CacheOptions::kinds, WARMGRAPH_KINDS)"));
    EXPECT_EQ(no_graphs.statistics.of(ArtifactKind::entries).hits +
                  no_graphs.statistics.of(ArtifactKind::entries).misses,
              0U);
    EXPECT_EQ(no_graphs.statistics.of(ArtifactKind::compiled).hits, 1U) << "what runs as it is";
    EXPECT_EQ(no_graphs.statistics.of(ArtifactKind::tuned).hits, 1U);

    const Start no_tuned = start(all_but(ArtifactKind::tuned));
    EXPECT_EQ(no_tuned.outcome, Outcome::replayed);
    EXPECT_EQ(no_tuned.tuning.outcome, TuningOutcome::untuned);
    EXPECT_EQ(no_tuned.tuning.config, m_kernel.candidates.front());
    EXPECT_THAT(no_tuned.tuning.reason, HasSubstr("tuned configurations are switched off"));
    EXPECT_EQ(no_tuned.statistics.of(ArtifactKind::tuned).hits + no_tuned.statistics.of(ArtifactKind::tuned).misses,
              0U);

    const Start programs_alone = start(Kinds{ArtifactKind::compiled});
    EXPECT_EQ(programs_alone.statistics.of(ArtifactKind::compiled).hits, 1U);

    const Start nothing = start(Kinds{});
    EXPECT_EQ(nothing.outcome, Outcome::eager);
    EXPECT_EQ(nothing.statistics.of(ArtifactKind::compiled).hits + nothing.statistics.of(ArtifactKind::compiled).made,
              0U);
    EXPECT_THAT(nothing.statistics.of(ArtifactKind::compiled).miss_reasons, IsEmpty());

    const Start all = start(k_all_kinds);
    EXPECT_EQ(all.outcome, Outcome::replayed);
    EXPECT_EQ(all.tuning.outcome, TuningOutcome::stored);
}

TEST_F(KindsTest, WithoutProfilesNoneIsRecorded)
{
    CacheOptions how = options();
    how.kinds = all_but(ArtifactKind::profiles);
    Cache cache{how};
    Function f = add_one(cache);
    const auto none = [](const ProfiledShape&) { return std::vector<Arg>{}; };
    EXPECT_THAT(cache.record_profile(f, none).why_not, HasSubstr("no profile is kept"));
}

TEST_F(KindsTest, AreThoseThatCanBeSwitched)
{
    for (const ArtifactKind wrong : {ArtifactKind::images, ArtifactKind::torch, ArtifactKind{99}}) {
        CacheOptions how = options();
        how.kinds = {ArtifactKind::entries, wrong};
        EXPECT_TRUE(
            failed_with(thrown_by([&] { Cache cache{how}; }), ErrorCode::invalid_argument,
                        fmt::format("CacheOptions::kinds has the kind '{}': expected entries, compiled, tuned or "
                                    "profiles",
                                    to_string(wrong))));
    }
}

TEST_F(KindsTest, WhatTunersCountedStaysCountedWhenTheyAreGone)
{
    const Start cold = start();
    EXPECT_EQ(cold.statistics.of(ArtifactKind::tuned).made, 1U);
    EXPECT_GT(cold.statistics.of(ArtifactKind::tuned).making_ms, 0);
    EXPECT_THAT(cold.statistics.of(ArtifactKind::tuned).miss_reasons, ElementsAre("heavy: no stored configuration"));
    EXPECT_THAT(cold.statistics.of(ArtifactKind::compiled).miss_reasons, Not(IsEmpty()));
    const Start warm = start();
    EXPECT_EQ(warm.statistics.of(ArtifactKind::tuned).hits, 1U);
    EXPECT_DOUBLE_EQ(warm.statistics.of(ArtifactKind::tuned).saved_ms,
                     cold.statistics.of(ArtifactKind::tuned).making_ms);
    EXPECT_THAT(warm.summary, HasSubstr("1 tuned kernel ("));
}

TEST_F(KindsTest, WhatUsingAWinnerTookIsNotSaved)
{
    TuningReport cold = tune();
    CacheOptions how = options();
    how.kinds = all_but(ArtifactKind::compiled); // if this kind was on, each program would count its own saving
    Cache cache{how};
    const TuningReport warm = tuner_of(cache).tune(kernel()).report(); // validates the winner beside the default
    EXPECT_GT(warm.took_ms, 0);
    EXPECT_DOUBLE_EQ(cache.statistics().of(ArtifactKind::tuned).load_ms, warm.took_ms);
    EXPECT_DOUBLE_EQ(cache.statistics().of(ArtifactKind::tuned).saved_ms, cold.search_ms - warm.took_ms);
}

TEST_F(KindsTest, TheProgramWinsOverTheEnvironment)
{
    ::setenv("WARMGRAPH_KINDS", "-entries", 1);
    const Outcome by_environment = start().outcome, by_program = start(k_all_kinds).outcome;
    ::unsetenv("WARMGRAPH_KINDS");
    EXPECT_EQ(by_environment, Outcome::eager);
    EXPECT_EQ(by_program, Outcome::recorded);
}

TEST(ParseKinds, TakesSomeOrAllButSome)
{
    using store::ArtifactKind;
    const store::KindSet all{ArtifactKind::entries, ArtifactKind::compiled, ArtifactKind::tuned,
                             ArtifactKind::profiles};
    const store::KindSet two{ArtifactKind::entries, ArtifactKind::profiles};
    EXPECT_EQ(store::parse_kinds("K", "").value(), all);
    EXPECT_EQ(store::parse_kinds("K", "all").value(), all);
    EXPECT_EQ(store::parse_kinds("K", "entries,profiles").value(), two);
    EXPECT_EQ(store::parse_kinds("K", "-tuned,-compiled").value(), two);
}

TEST(ParseKinds, RefusesWhatItDoesNotKnow)
{
    for (const auto& [text, why] : std::map<std::string, std::string>{
             {"entry", "the kind 'entry': expected entries, compiled, tuned, profiles or all"},
             {"graphs", "the kind 'graphs', which is called 'entries' now"},
             {"-profile", "the kind 'profile', which is called 'profiles' now"},
             {"torch", "the kind 'torch'"},
             {"-entries,tuned", "either kinds that are on"},
             {"tuned,-entries", "either kinds that are on"},
             {"entries,", "the kind ''"},
             {"-", "the kind ''"}}) {
        const auto parsed = store::parse_kinds("WARMGRAPH_KINDS", text);
        ASSERT_TRUE(failed_with(parsed, ErrorCode::invalid_argument)) << text;
        EXPECT_THAT(parsed.error().message, AllOf(HasSubstr("WARMGRAPH_KINDS"), HasSubstr(why)));
    }
}

} // namespace
} // namespace warmgraph::test::kinds_test
