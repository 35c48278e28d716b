// The results of a restored graph vary like the function's own. By chance they can leave the range of a few runs of the
// function.
#include <algorithm>
#include <vector>

#include "recording_fixture.hpp"

namespace warmgraph::test::spread_by_chance_test {
namespace {

class SpreadByChance : public FlatFunction {
protected:
    /// Records a function whose own results differ by up to 16 roundings. The restored graph returns the values of
    /// `of_restored` in turn, and then always the last one.
    Result<Recording> recorded_with(std::vector<int> of_restored)
    {
        declare("y", RegionKind::output, 1, 0);
        interface.regions.back().dtype = frame.tensors.back().dtype = DType::f32;
        device->textures->draw = [this, of_restored](bool is_restored) {
            if (is_restored) return roundings_above(1, of_restored[std::min(tries++, of_restored.size() - 1)]);
            return roundings_above(1, 16 * (runs++ % 2));
        };
        return recorded([this](Recorder& r) { launch(r, kernel("draw", {r["y"]})); });
    }
    int runs = 0;
    std::size_t tries = 0;
};

TEST_F(SpreadByChance, WithinItOneTryIsEnough)
{
    const auto recording = recorded_with({8});
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(tries, 2U) << "one at each of two places";
}

TEST_F(SpreadByChance, WhatLeavesItByALittleIsTriedAgain)
{
    const auto recording = take(recorded_with({40, 8}));
    EXPECT_EQ(tries, 3U);
    EXPECT_THAT(recording.entry.header.info.verification, HasSubstr("within spread"));
}

TEST_F(SpreadByChance, WhatLeavesItEachTimeIsRefused)
{
    EXPECT_TRUE(failed_with(recorded_with({40}), ErrorCode::verification_failed, "by up to 24 roundings"));
    EXPECT_EQ(tries, 6U) << "three of each image of its module, a part and the whole";
}

TEST_F(SpreadByChance, WhatIsFarFromItIsRefusedAtOnce)
{
    EXPECT_THAT(message_of(recorded_with({100})), HasSubstr("by up to 84 roundings"));
    EXPECT_EQ(tries, 2U) << "one of each image";
}

} // namespace
} // namespace warmgraph::test::spread_by_chance_test
