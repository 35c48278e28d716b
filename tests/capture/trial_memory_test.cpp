// Copies of memory for trials, and read-only states that are too large to copy.
#include <cmath>
#include <limits>

#include "expect_error.hpp"
#include "flat_fixture.hpp"
#include "verify/trial_memory.hpp"
#include "verify/trials.hpp"

namespace warmgraph::test::trial_memory_test {
namespace {

using Outputs = TrialMemory::Outputs;

class TrialMemoryTest : public FlatFunction {
protected:
    static constexpr std::int32_t k_large = 1 << 18;
    static constexpr std::uint64_t k_small_room = 1U << 16U, k_room = 1U << 26U; ///< bytes; without and with room for w
    TrialMemoryTest()
    {
        x = declare("x", RegionKind::input, k_count, 5, 4);
        w = declare("w", RegionKind::weights, k_count, 3);
    }
    std::unique_ptr<TrialMemory> create(std::uint64_t most = k_room, Outputs outputs = Outputs::disturbed)
    {
        auto trial = TrialMemory::create(device, interface, frame, most);
        EXPECT_TRUE(trial) << trial.error().message;
        EXPECT_TRUE((*trial)->reset(0, outputs));
        return std::move(*trial);
    }
    MemoryRef x, w;
};

TEST_F(TrialMemoryTest, CopiesHaveTheContentsAndTheAlignmentOfTheCallAndTwoPlaces)
{
    const auto trial = create();
    const auto first = trial->regions();
    EXPECT_NE(first[0].address, x.address);
    EXPECT_NE(first[1].address, w.address);
    EXPECT_EQ(first[0].address.flat() % 256, x.address.flat() % 256);
    EXPECT_EQ(read(first[0]), all(5));
    EXPECT_EQ(read(first[1]), all(3));
    ASSERT_TRUE(trial->reset(1));
    EXPECT_NE(trial->regions()[0].address, first[0].address);
    EXPECT_EQ(trial->regions()[0].address.flat() % 256, x.address.flat() % 256);
    EXPECT_EQ(read(trial->regions()[0]), all(5));
    EXPECT_TRUE(trial->is_writable(0));
    EXPECT_FALSE(trial->is_writable(1));
    EXPECT_TRUE(trial->check_trial());
}

TEST_F(TrialMemoryTest, WhatWritesOutsideOrIntoWhatIsOnlyReadIsNamed)
{
    const auto trial = create();
    auto* const contents = trial->regions()[1].address.pointer<std::int32_t>();
    for (const int at : {-1, static_cast<int>(k_count)}) {
        contents[at] ^= 1;
        EXPECT_TRUE(failed_with(trial->check_trial(), ErrorCode::verification_failed, "outside 'w'")) << at;
        contents[at] ^= 1;
    }
    EXPECT_TRUE(trial->check_trial());
    contents[k_count - 1] = 4;
    EXPECT_TRUE(failed_with(trial->check_trial(), ErrorCode::verification_failed, "'w', which was declared read-only"));
    EXPECT_TRUE(trial->check_read_only()) << "the caller's own is as it was";
}

TEST_F(TrialMemoryTest, StartsFromTheSnapshotEachTimeWhateverTheCallerHasSince)
{
    const auto trial = create();
    *x.address.pointer<std::int32_t>() = 77;
    trial->regions()[0].address.pointer<std::int32_t>()[1] = 78;
    for (const std::size_t placement : {0U, 1U, 0U}) {
        ASSERT_TRUE(trial->reset(placement));
        EXPECT_EQ(read(trial->regions()[0]), all(5));
    }
}

TEST_F(TrialMemoryTest, OutputsStartWithOtherContentsWhereNothingElseOfTheCallLies)
{
    const MemoryRef y = declare("y", RegionKind::output, k_count, 8);
    const MemoryRef in_place = declare("in_place", RegionKind::output, k_count, 9);
    frame.tensors[3].base = frame.tensors[0].base; // makes the output the same memory as the input
    frame.tensors[3].offset = frame.tensors[0].offset;
    frame.memory[3] = x;
    const auto trial = create();
    for (const int placement : {0, 1}) {
        ASSERT_TRUE(trial->reset(static_cast<std::size_t>(placement)));
        EXPECT_EQ(read(trial->regions()[0]), all(5));
        EXPECT_EQ(read(trial->regions()[2]), all(9)) << "8, with its lowest bit changed";
        EXPECT_EQ(read(trial->regions()[3]), all(5));
    }
    ASSERT_TRUE(trial->reset(0, Outputs::as_they_were));
    EXPECT_EQ(read(trial->regions()[2]), all(8));
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
    const auto trial = create();
    const auto* const now = trial->regions()[2].address.pointer<const float>();
    for (std::size_t i = 0; i < values.size(); ++i) {
        EXPECT_TRUE(std::isfinite(now[i])) << values[i];
        if (!std::isfinite(values[i])) continue;
        EXPECT_GT(std::abs(now[i] - values[i]), 0.5F * std::abs(values[i])) << values[i] << " became " << now[i];
        EXPECT_GT(std::abs(now[i]), 1e-6F) << values[i];
    }
}

TEST_F(TrialMemoryTest, ReadOnlyStatesBeyondTheRoomAreUsedInPlaceAndWatched)
{
    const MemoryRef large = declare("large", RegionKind::weights, k_large, 6);
    const auto trial = create(k_small_room);
    EXPECT_EQ(trial->regions()[2], large);
    EXPECT_NE(trial->regions()[1].address, w.address) << "the smallest come first";
    EXPECT_NE(trial->regions()[0].address, x.address) << "only what is read-only may be used in place";
    EXPECT_TRUE(trial->check_trial());
    EXPECT_TRUE(trial->check_read_only());
    large.address.pointer<std::int32_t>()[k_large - 1] = 7;
    EXPECT_TRUE(failed_with(trial->check_read_only(), ErrorCode::not_recordable, "'large'"));
    EXPECT_NE(create()->regions()[2].address, large.address) << "where there is room it is copied";
}

TEST_F(TrialMemoryTest, AModelsWeightsAreNotCopied)
{
    constexpr std::int64_t k_mib = (1 << 20) / sizeof(std::int32_t);
    const MemoryRef large = declare("large", RegionKind::weights, 40 * k_mib, 6);
    const MemoryRef small = declare("small", RegionKind::weights, 20 * k_mib, 6);
    const auto trial = create(1ULL << 30U);
    EXPECT_EQ(trial->regions()[2], large) << "two copies would take 80 MiB";
    EXPECT_NE(trial->regions()[3].address, small.address);
    EXPECT_TRUE(trial->check_in_place());
}

TEST_F(TrialMemoryTest, WhatMayBeWrittenMustFit)
{
    declare("cache", RegionKind::state, k_large, 6);
    const std::size_t before = device->live();
    const auto refused = TrialMemory::create(device, interface, frame, k_small_room);
    ASSERT_TRUE(failed_with(refused, ErrorCode::not_recordable));
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("'cache'"), HasSubstr("at most " + std::to_string(k_small_room))));
    EXPECT_EQ(device->live(), before) << "what was allocated before is released";
    EXPECT_TRUE(TrialMemory::create(device, interface, frame, k_room));
}

TEST_F(TrialMemoryTest, HalfOfWhatIsFreeMayBeTaken)
{
    declare("cache", RegionKind::state, k_large, 6);
    device->free = k_small_room;
    EXPECT_TRUE(failed_with(TrialMemory::create(device, interface, frame), ErrorCode::not_recordable, "'cache'"));
    device->free = k_room;
    EXPECT_TRUE(TrialMemory::create(device, interface, frame));
}

TEST_F(TrialMemoryTest, SizesThatNoMemoryHoldsAreAnErrorAndNoException)
{
    frame.tensors[0].sizes[0] = std::int64_t{1} << 61U;
    EXPECT_TRUE(failed_with(TrialMemory::create(device, interface, frame), ErrorCode::not_recordable, "'x'"));
}

TEST_F(TrialMemoryTest, WeightsThatAliasSomethingWritableAreCopied)
{
    frame.tensors[0].offset = frame.tensors[1].offset; // x begins at the same address as w
    frame.memory[0] = w;
    const auto trial = create();
    EXPECT_NE(trial->regions()[1].address, w.address);
    EXPECT_EQ(trial->regions()[0].address, trial->regions()[1].address);
    EXPECT_TRUE(failed_with(TrialMemory::create(device, interface, frame, 1), ErrorCode::not_recordable, "'x'"))
        << "and never used in place";
}

TEST_F(TrialMemoryTest, TheCallersMemoryIsPutBack)
{
    const auto trial = create();
    std::fill_n(x.address.pointer<std::int32_t>(), k_count, 0);
    ASSERT_TRUE(trial->write_back());
    EXPECT_EQ(read(x), all(5));
}

TEST_F(TrialMemoryTest, PageLockedRegionsAreCopiedIntoPageLockedMemoryAndTheirWritingIsSeen)
{
    const MemoryRef host = declare_host("host", RegionKind::input, 9);
    const auto trial = create(k_room, Outputs::as_they_were);
    const MemoryRef copy = trial->regions()[2];
    EXPECT_NE(copy.address, host.address);
    EXPECT_EQ(device->space_of(copy.address), backends::MemorySpace::host);
    EXPECT_EQ(read(copy), all(9));
    EXPECT_TRUE(trial->check_host_regions());
    trial->regions()[0].address.pointer<std::int32_t>()[0] = 1; // allowed, because this region is on the device
    EXPECT_TRUE(trial->check_host_regions());
    copy.address.pointer<std::int32_t>()[3] = 1;
    const auto written = trial->check_host_regions();
    EXPECT_TRUE(failed_with(written, ErrorCode::not_recordable, "writes region 'host' on the host (at byte 12)"));
}

TEST_F(TrialMemoryTest, WordsAreSearchedInTheSnapshotOfWhatIsNoFloatingPoint)
{
    constexpr std::uint64_t k_address = 0x1234'5678'9ABC;
    const auto put = [&](const MemoryRef& memory) {
        std::memcpy(memory.address.pointer<std::byte>() + 12, &k_address, sizeof k_address);
    };
    const MemoryRef real = declare("real", RegionKind::input, k_count, 0);
    const MemoryRef vouched = declare("vouched", RegionKind::input, k_count, 0);
    const MemoryRef large = declare("large", RegionKind::weights, k_large, 0);
    frame.tensors[2].dtype = DType::f32;
    interface.regions[3].no_addresses = true;
    for (const MemoryRef& memory : {x, real, vouched, large}) put(memory);
    const auto trial = create(k_small_room);
    std::fill_n(x.address.pointer<std::int32_t>(), k_count, 0); // changes x after the snapshot
    const backends::AddressWindow window{k_address, k_address + 1};
    const auto found = take(trial->words_in({&window, 1}));
    std::vector<std::tuple<std::size_t, std::uint64_t, std::uint64_t>> words;
    for (const auto& word : found) words.emplace_back(word.region, word.offset, word.value);
    EXPECT_THAT(words, UnorderedElementsAre(std::tuple{0U, 12U, k_address}, std::tuple{4U, 12U, k_address}))
        << "what is used in place is searched where it is";
}

TEST_F(TrialMemoryTest, AbandonedCopiesAreLeaked)
{
    const std::size_t before = device->live();
    create().reset();
    EXPECT_EQ(device->live(), before);
    auto trial = create();
    const MemoryRef copy = trial->regions()[0];
    trial->abandon();
    trial.reset();
    EXPECT_GT(device->live(), before);
    EXPECT_EQ(read(copy), all(5));
}

TEST_F(TrialMemoryTest, ATrialThatWritesACallersReadOnlyStateIsNoOrdinaryFailure)
{
    declare("large", RegionKind::weights, k_large, 6);
    const std::shared_ptr<TrialMemory> trial = create(k_small_room);
    const DeclaredHandles handles;
    const Trials trials{device, *device->create_stream(), trial, handles, std::chrono::seconds{1}, nullptr};
    EXPECT_TRUE(trials.check_caller_memory());
    *frame.memory[2].address.pointer<std::int32_t>() = 0;
    EXPECT_TRUE(failed_with(trials.check_caller_memory(), ErrorCode::partly_launched))
        << "the function must not run on top of it";
}

} // namespace
} // namespace warmgraph::test::trial_memory_test
