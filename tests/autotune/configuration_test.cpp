// Tests candidates, ranges, and whether a configuration is within a range.
#include "expect_error.hpp"
#include "warmgraph/autotune/configuration.hpp"

namespace warmgraph::autotune::configuration_test {
namespace {

Space tiles() { return {{{{"TILE", 8}, {"WIDE", 1}}, {{"TILE", 16}, {"WIDE", 1}}}, {{"TILE", {2, 4, 8, 16, 32}}}}; }

TEST(TuningSpace, IsAccepted) { EXPECT_TRUE(succeeded(check(tiles()))); }

TEST(TuningSpace, ThatMakesNoSenseIsNamed)
{
    const auto with = [](auto change) {
        Space space = tiles();
        change(space);
        return check(space);
    };
    using enum ErrorCode;
    EXPECT_TRUE(failed_with(check(Space{}), invalid_argument, "0 candidates, expected 1"));
    EXPECT_TRUE(failed_with(check(Space{{Configuration{}}}), invalid_argument, "0 parameters"));
    EXPECT_TRUE(failed_with(with([](Space& s) { s.candidates.push_back(s.candidates[0]); }), invalid_argument,
                            "'TILE=8 WIDE=1' is there twice"));
    EXPECT_TRUE(failed_with(with([](Space& s) { s.candidates.push_back({{"TILE", 4}}); }), invalid_argument,
                            "'TILE=4' has other parameters"));
    EXPECT_TRUE(failed_with(check(Space{{{{"-D EVIL", 1}}}}), invalid_argument, "not a valid macro name"));
    EXPECT_TRUE(failed_with(check(Space{{{{"1A", 1}}}}), invalid_argument, "not a valid macro name"));
    EXPECT_TRUE(failed_with(with([](Space& s) { s.ranges[0].values = {2, 2}; }), invalid_argument,
                            "are not in ascending order"));
    EXPECT_TRUE(failed_with(with([](Space& s) { s.ranges[0].values = {}; }), invalid_argument, "0 values"));
    EXPECT_TRUE(failed_with(with([](Space& s) { s.ranges[0].name = "OTHER"; }), invalid_argument, "'OTHER'"));
    EXPECT_TRUE(failed_with(with([](Space& s) { s.ranges.push_back(s.ranges[0]); }), invalid_argument, "two ranges"));
}

TEST(TuningSpace, IsAnotherSetWithAnotherValueOrAnotherDefault)
{
    Space space = tiles();
    const Digest hash = configs_hash(space.candidates);
    EXPECT_EQ(hash, configs_hash(tiles().candidates));
    std::swap(space.candidates[0], space.candidates[1]);
    EXPECT_NE(hash, configs_hash(space.candidates));
    space = tiles();
    space.candidates[1]["TILE"] = 17;
    EXPECT_NE(hash, configs_hash(space.candidates));
    space = tiles();
    space.candidates.pop_back();
    EXPECT_NE(hash, configs_hash(space.candidates));
}

TEST(TuningSpace, KnowsWhatLiesOutsideOfItsRanges)
{
    Space space = tiles();
    EXPECT_EQ(why_outside(space, {{"TILE", 32}, {"WIDE", 1}}), "");
    EXPECT_THAT(why_outside(space, {{"TILE", 64}, {"WIDE", 1}}), HasSubstr("TILE=64 is outside"));
    EXPECT_THAT(why_outside(space, {{"TILE", 3}, {"WIDE", 1}}), HasSubstr("TILE=3 is outside"));
    EXPECT_THAT(why_outside(space, {{"TILE", 8}, {"WIDE", 2}}), HasSubstr("WIDE=2 is outside"));
    EXPECT_THAT(why_outside(space, {{"TILE", 8}}), HasSubstr("other parameters"));
    space.admits = [](const Configuration& config) { return config.at("TILE") < 32; };
    EXPECT_THAT(why_outside(space, {{"TILE", 32}, {"WIDE", 1}}), HasSubstr("does not admit"));
}

TEST(TuningSpace, StepsToTheNextValuesOfARange)
{
    Space space = tiles();
    const auto tiles_beside = [&](std::int64_t tile) {
        std::vector<std::int64_t> values;
        for (const auto& next : neighbours(space, space.ranges[0], {{"TILE", tile}, {"WIDE", 1}}))
            values.push_back(next.at("TILE"));
        return values;
    };
    EXPECT_THAT(tiles_beside(8), ElementsAre(4, 16));
    EXPECT_THAT(tiles_beside(2), ElementsAre(4));
    EXPECT_THAT(tiles_beside(32), ElementsAre(16));
    EXPECT_THAT(tiles_beside(9), ElementsAre(8, 16)) << "a candidate's value need not be in the range";
    EXPECT_THAT(tiles_beside(100), ElementsAre(32));
    space.admits = [](const Configuration& config) { return config.at("TILE") != 16; };
    EXPECT_THAT(tiles_beside(8), ElementsAre(4));
}

} // namespace
} // namespace warmgraph::autotune::configuration_test
