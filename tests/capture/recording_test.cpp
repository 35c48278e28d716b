// Recording on a device with flat addresses: captures, images, alignment and handles.
#include "number_decl.hpp"
#include "recording_fixture.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph::test::recording_test {
namespace {

TEST_F(RecordingTest, FindsPointersAmongParametersAndLeavesTheCallersMemoryAlone)
{
    auto answer = all(7);
    answer[0] = 0; // no kernel writes this element
    after_answer = [&] {
        EXPECT_EQ(read(y), answer);
        std::fill_n(y.address.pointer<std::int32_t>(), k_count, -1);
    };
    auto recording = take(recorded([this](Recorder& r) {
        const Address scratch = r.alloc("scratch", k_count * 4);
        launch(r, kernel("add", {scratch, r["x"]}, k_count));
        launch(r, kernel("add", {r["y"] + 4, scratch + 4}, k_count - 1));
    }));
    EXPECT_EQ(device->preparations, 1);
    EXPECT_EQ(read(x), all(5));
    EXPECT_EQ(read(y), all(-1)) << "no trial writes the caller's memory";
    const auto& params = stored_kernel(recording, 1).params;
    EXPECT_EQ(params[0].slots.at(0), (cachefmt::Slot{cachefmt::SlotKind::region, 1, 0, 8, 4}));
    EXPECT_EQ(params[1].slots.at(0), (cachefmt::Slot{cachefmt::SlotKind::region, 2, 0, 8, 4}));
    EXPECT_EQ(recording.entry.header.info.unproven, 0U);
    EXPECT_EQ(recording.entry.header.info.verification, "bitwise (3 runs)");

    const MemoryRef other_x = make(k_count, 40), other_y = make(k_count, -1);
    ASSERT_TRUE(replay(recording, {other_x, other_y}));
    auto expected = all(42);
    expected[0] = -1;
    EXPECT_EQ(read(other_y), expected);
}

TEST_F(RecordingTest, CapturesATensorAtAnAddressOfExactlyItsAlignment)
{
    frame = {};
    interface = {};
    declare("x", RegionKind::input, k_count, 5, 4);
    declare("y", RegionKind::output, k_count, 0, 256);
    std::vector<std::uint64_t> seen_x, seen_y;
    auto recording = take(recorded([&](Recorder& r) {
        seen_x.push_back(r["x"].flat() % 8);
        seen_y.push_back(r["y"].flat() % 256);
        add(r);
    }));
    EXPECT_THAT(seen_x, Each(4U));
    EXPECT_THAT(seen_y, Each(0U));
    EXPECT_EQ(recording.entry.graph.regions[0].alignment, 4U);
}

TEST_F(RecordingTest, MovesEveryRegionByADistanceOfItsOwn)
{
    for (int i = 0; i < 12; ++i) declare(fmt::format("w{}", i), RegionKind::weights, k_count, i);
    auto recording = take(recorded([this](Recorder& r) {
        add(r);
        for (int i = 0; i < 12; ++i) {
            const Address part = r.alloc(fmt::format("part{}", i), 64);
            launch(r, kernel("sum", {part, r[fmt::format("w{}", i)]}, k_count));
            launch(r, kernel("add", {r["y"] + static_cast<std::uint64_t>(i) * 4, part}, 1));
        }
    }));
    EXPECT_EQ(recording.entry.header.info.unproven, 0U);
}

TEST_F(RecordingTest, RestoredScratchIsAlignedAsItWasWhereverTheDeviceAllocates)
{
    device->lead = 256;
    cachefmt::Graph graph;
    graph.regions = {{"scratch", RegionKind::arena, 64, 512, {}}};
    graph.nodes.emplace_back(
        cachefmt::FillNode{{cachefmt::SlotKind::region, 0, 0, 8, 0}, Bytes(1, std::byte{0x5A}), 64});
    const auto executable = replay::Executable::restore(device, graph, modules, {}, {{MemoryRef{}}, {}}, phases);
    ASSERT_TRUE(executable) << executable.error().message;
    const MemoryRef arena = (*executable)->arena();
    auto* const start = arena.address.pointer<std::byte>();
    std::fill_n(start, arena.size, std::byte{0});
    auto stream = *device->create_stream();
    ASSERT_TRUE((*executable)->launch(*stream, {{MemoryRef{}}, {}}));
    auto* const written = std::find(start, start + arena.size, std::byte{0x5A});
    ASSERT_LE(written + 64, start + arena.size);
    EXPECT_EQ(Address::from_pointer(written).flat() % 512, 0U);
    EXPECT_EQ(std::count(start, start + arena.size, std::byte{0x5A}), 64);
}

TEST_F(RecordingTest, StoresImagesCutDownToTheKernelsInUse)
{
    auto recording = take(recorded(add));
    ASSERT_EQ(recording.images.size(), 1U);
    EXPECT_EQ(as_text(recording.images[0].second), "cut:add,");
}

TEST_F(RecordingTest, StoresTheWholeImageWhereTheCutOneComputesSomethingElse)
{
    device->error_of_cut_images = 1;
    auto recording = take(recorded(add));
    ASSERT_EQ(recording.images.size(), 1U);
    EXPECT_EQ(as_text(recording.images[0].second), "whole");
    EXPECT_EQ(recording.entry.graph.images.at(0).digest, sha256(recording.images[0].second));
}

TEST_F(RecordingTest, AnOutputThatHoldsTheRightResultsAlreadyProvesNothing)
{
    std::fill_n(y.address.pointer<std::int32_t>(), k_count, 6); // x + 1
    device->restores_nothing = true;
    EXPECT_TRUE(failed_with(recorded(add), ErrorCode::verification_failed));
    EXPECT_EQ(read(y), all(6)) << "the caller's is left alone";
}

TEST_F(RecordingTest, RefusesUndeclaredMemoryWithTheAllocationItIsIn)
{
    const MemoryRef secret = make(k_count, 3);
    const auto refused = recorded([&](Recorder& r) { launch(r, kernel("add", {r["y"], secret.address}, k_count)); });
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("kernel add (node 0)"), HasSubstr("parameter 1 byte 0"),
                      HasSubstr(fmt::format("{:#x}", secret.address.flat())), HasSubstr("256 bytes")));
}

TEST_F(RecordingTest, RefusesAnAddressThatWasKeptFromAnEarlierRun)
{
    Address kept;
    const auto refused = recorded([&](Recorder& r) {
        if (kept.is_null()) kept = r["x"];
        launch(r, kernel("add", {r["y"], kept}, k_count));
    });
    EXPECT_TRUE(failed_with(refused, ErrorCode::not_recordable));
}

/// The function y = the contents of a texture. In the call that is recorded, the texture's handle is 7.
class TextureTest : public RecordingTest {
protected:
    TextureTest() { device->textures->live = {{7, 11}, {9, 22}}; }
    void declare_handle(const NumberDecl& scalar)
    {
        interface.scalars.push_back(scalar);
        interface.ranges.push_back(*range_of(scalar));
        frame.scalars.push_back(7);
    }
    Callable read_texture = [this](Recorder& r) { launch(r, fetch(r["y"], r.scalar<std::uint64_t>("texture"))); };
};

TEST_F(TextureTest, IsReadByTheHandleThatEachCallGives)
{
    declare_handle(number("texture", DType::u64));
    auto recording = take(recorded(read_texture));
    EXPECT_FALSE(device->textures->was_misused);
    EXPECT_EQ(stored_kernel(recording).params[1].slots.at(0), (cachefmt::Slot{cachefmt::SlotKind::scalar, 0, 0, 8, 0}));
    const MemoryRef other_y = make(k_count, 0);
    ASSERT_TRUE(replay(recording, {x, other_y}));
    EXPECT_EQ(read(other_y), all(11));
    frame.scalars = {9};
    ASSERT_TRUE(replay(recording, {x, other_y}));
    EXPECT_EQ(read(other_y), all(22));
}

TEST_F(TextureTest, HasNoNeighboursToRunWithAlsoWhereARangeWasDeclared)
{
    declare_handle(number("texture", DType::u64, std::pair{0.0, 1000.0}));
    const auto recording = recorded(read_texture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_FALSE(device->textures->was_misused);
}

TEST_F(TextureTest, IsRefusedWhereItsHandleIsNoScalar)
{
    const auto refused = recorded([this](Recorder& r) { launch(r, fetch(r["y"], 7)); });
    ASSERT_TRUE(failed_with(refused, ErrorCode::not_recordable));
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("kernel fetch (node 0)"), HasSubstr("parameter 1 byte 0"), HasSubstr("0x7"),
                      HasSubstr("declare it as a u64 scalar and pass each process's own handle")));
}

/// Guards compare alignments up to 256 bytes. Work that needs a stronger alignment must not be stored.
TEST_F(RecordingTest, WhatIsChosenForAStrongerAlignmentThanAnyGuardHasIsNotRecorded)
{
    ASSERT_EQ(y.address.flat() % 512, 0U);
    auto recording = take(recorded([this](Recorder& r) {
        const Address to = r["y"], from = r["x"];
        if (to.flat() % 512 == 0) return launch(r, kernel("add", {to, from}, k_count));
        launch(r, kernel("add", {to, from}, k_count / 2));
        launch(r, kernel("add", {to + 2 * k_count, from + 2 * k_count}, k_count / 2));
    }));
    EXPECT_EQ(recording.entry.graph.nodes.size(), 2U);
    const MemoryRef other = make(k_count, 0, 256);
    ASSERT_NE(other.address.flat() % 512, 0U);
    ASSERT_TRUE(replay(recording, {frame.memory[0], other}));
    EXPECT_EQ(read(other), all(6));
}

} // namespace
} // namespace warmgraph::test::recording_test
