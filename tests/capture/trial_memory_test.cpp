// Copies for verification, and read-only states that are too large to copy.
#include <cmath>
#include <limits>

#include "flat_fixture.hpp"
#include "verify/trial_memory.hpp"
#include "verify/verification.hpp"

namespace warmgraph::test {
namespace {

using cachefmt::RegionKind;
using testing::HasSubstr;

class TrialMemoryTest : public FlatFunction {
protected:
    TrialMemoryTest()
    {
        x = declare("x", RegionKind::input, k_count, 5, 4);
        w = declare("w", RegionKind::weights, k_count, 3);
    }
    std::unique_ptr<TrialMemory> create(std::uint64_t largest_copied_weights)
    {
        auto trial = TrialMemory::create(device, interface, frame, largest_copied_weights);
        EXPECT_TRUE(trial) << trial.error().message;
        EXPECT_TRUE((*trial)->reset(0));
        return std::move(*trial);
    }
    MemoryRef x, w;
};

TEST_F(TrialMemoryTest, CopiesHaveTheContentsAndTheAlignmentOfTheCallAndTwoPlaces)
{
    const auto trial = create(1U << 20);
    const auto first = trial->regions();
    EXPECT_NE(first[0].address, x.address);
    EXPECT_NE(first[1].address, w.address);
    EXPECT_EQ(first[0].address.flat() % 256, x.address.flat() % 256);
    EXPECT_EQ(read(first[0]), all(5));
    EXPECT_EQ(read(first[1]), all(3));
    ASSERT_TRUE(trial->reset(1));
    EXPECT_NE(trial->regions()[0].address, first[0].address);
    EXPECT_EQ(read(trial->regions()[0]), all(5));
    EXPECT_TRUE(trial->collect());
    trial->regions()[1].address.pointer<std::int32_t>()[k_count] = 0;
    const auto broken = trial->collect();
    ASSERT_FALSE(broken);
    EXPECT_THAT(broken.error().message, HasSubstr("outside 'w'"));
}

TEST_F(TrialMemoryTest, OutputsStartWithOtherContentsWhereNothingElseOfTheCallLies)
{
    const MemoryRef y = declare("y", RegionKind::output, k_count, 8);
    const MemoryRef in_place = declare("in_place", RegionKind::output, k_count, 9);
    frame.tensors[3].base = frame.tensors[0].base; // an output that is the input too
    frame.tensors[3].offset = frame.tensors[0].offset;
    frame.memory[3] = x;
    const auto trial = create(1U << 20);
    for (const int placement : {0, 1}) {
        ASSERT_TRUE(trial->reset(static_cast<std::size_t>(placement)));
        EXPECT_EQ(read(trial->regions()[0]), all(5));
        EXPECT_EQ(read(trial->regions()[2]), all(9)) << "8, with its lowest bit changed";
        EXPECT_EQ(read(trial->regions()[3]), all(5));
    }
    ASSERT_TRUE(trial->reset_original());
    EXPECT_EQ(read(y), all(9));
    EXPECT_EQ(read(x), all(5));
    ASSERT_TRUE(trial->write_back());
    EXPECT_EQ(read(y), all(8));
    EXPECT_EQ(read(in_place), all(9)) << "its own memory is not the call's";
}

TEST_F(TrialMemoryTest, NumbersOfOutputsBecomeFiniteOnesThatAreFarAway)
{
    const MemoryRef y = declare("y", RegionKind::output, k_count, 0);
    frame.tensors[2].dtype = DType::f32;
    const std::vector<float> values{0.0F,
                                    -0.0F,
                                    1.0F,
                                    -1.0F,
                                    2.0F,
                                    1e-30F,
                                    1e30F,
                                    std::numeric_limits<float>::infinity(),
                                    std::numeric_limits<float>::quiet_NaN(),
                                    0.001F};
    std::ranges::copy(values, y.address.pointer<float>());
    const auto trial = create(1U << 20);
    const auto* const now = trial->regions()[2].address.pointer<const float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_TRUE(std::isfinite(now[i])) << values[i];
        if (!std::isfinite(values[i])) continue;
        EXPECT_GT(std::abs(now[i] - values[i]), 0.5F * std::abs(values[i])) << values[i] << " became " << now[i];
        EXPECT_GT(std::abs(now[i]), 1e-6F) << values[i];
    }
}

TEST_F(TrialMemoryTest, MemoryThatTheHostCannotHoldIsAnErrorAndNoException)
{
    frame.tensors[0].sizes[0] = std::int64_t{1} << 61U;
    const auto trial = TrialMemory::create(device, interface, frame, 1U << 20U);
    ASSERT_FALSE(trial);
    EXPECT_EQ(trial.error().code, ErrorCode::out_of_memory) << trial.error().message;
}

TEST_F(TrialMemoryTest, LargeWeightsAreUsedInPlaceAndWatched)
{
    const auto trial = create(k_count * 4 - 1);
    EXPECT_EQ(trial->regions()[1], w);
    EXPECT_NE(trial->regions()[0].address, x.address) << "only what is read-only may be used in place";
    const auto outcomes = trial->collect();
    ASSERT_TRUE(outcomes);
    EXPECT_TRUE((*outcomes)[1].empty());
    EXPECT_TRUE(trial->check_in_place());
    w.address.pointer<std::int32_t>()[k_count - 1] = 4;
    const auto changed = trial->check_in_place();
    ASSERT_FALSE(changed);
    EXPECT_EQ(changed.error().code, ErrorCode::verification_failed);
    EXPECT_THAT(changed.error().message, HasSubstr("'w'"));
}

TEST_F(TrialMemoryTest, WeightsThatAliasSomethingWritableAreCopied)
{
    frame.tensors[0].offset = frame.tensors[1].offset; // x lies where w does
    frame.memory[0] = w;
    const auto trial = create(1);
    EXPECT_NE(trial->regions()[1].address, w.address);
    EXPECT_EQ(trial->regions()[0].address, trial->regions()[1].address);
}

TEST_F(TrialMemoryTest, TheCallersMemoryIsPutBack)
{
    const auto trial = create(1U << 20);
    std::fill_n(x.address.pointer<std::int32_t>(), k_count, 0);
    const auto left = trial->collect_original();
    ASSERT_TRUE(left);
    EXPECT_EQ(load<std::int32_t>((*left)[0]), 0);
    ASSERT_TRUE(trial->write_back());
    EXPECT_EQ(read(x), all(5));
}

TEST_F(TrialMemoryTest, AReplayThatWritesIntoMemoryUsedInPlaceIsNoOrdinaryFailure)
{
    const auto trial = create(1);
    auto stream = *device->create_stream();
    const DeclaredHandles handles;
    const TrialReplay replay{*device, *stream, *trial, handles};
    EXPECT_TRUE(replay.check_caller_memory());
    *w.address.pointer<std::int32_t>() = 0;
    const auto damaged = replay.check_caller_memory();
    ASSERT_FALSE(damaged);
    EXPECT_EQ(damaged.error().code, ErrorCode::partly_launched) << "the function must not run on top of it";
}

} // namespace
} // namespace warmgraph::test
