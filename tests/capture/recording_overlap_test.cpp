// Tensors overlap in the recorded call; scalars have large ranges.
#include "number_decl.hpp"
#include "recording_fixture.hpp"
#include "warmgraph/capture/numbers.hpp"

namespace warmgraph::test::recording_overlap_test {
namespace {

/// Two tensors of one buffer.
class Overlap : public FlatFunction {
protected:
    void declare_both(std::uint64_t distance)
    {
        const std::uint64_t size = k_count * 4ULL;
        buffer = make(2 * k_count, 5);
        declare_at("x", RegionKind::state, {buffer.address, size});
        declare_at("y", RegionKind::output, {buffer.address + distance, size});
    }
    void add(Recorder& r, std::uint32_t grid = 1)
    {
        auto work = kernel("add", {r["y"], r["x"]}, 8);
        work.grid[0] = grid;
        launch(r, work);
    }
    [[nodiscard]] static std::optional<std::int64_t> distance(const Recording& recording)
    {
        const auto& header = recording.entry.header;
        EXPECT_EQ(header.key.guards_digest, cachefmt::guards_digest(header.guards));
        EXPECT_EQ(header.guards.tensors[0].alias_group, header.guards.tensors[1].alias_group);
        return header.guards.tensors[1].distance;
    }
    MemoryRef buffer;
};

TEST_F(Overlap, IsNoGuardOfItsOwnWhereTheFunctionDoesNotAsk)
{
    declare_both(128);
    const auto recording = recorded([this](Recorder& r) { add(r); });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(distance(*recording), std::nullopt);
    EXPECT_EQ(recording->entry.header.key.guards_digest, header().key.guards_digest);
    EXPECT_EQ(stored_kernel(*recording).params[0].slots.at(0).target, 1U);
    EXPECT_EQ(stored_kernel(*recording).params[1].slots.at(0).target, 0U);
}

TEST_F(Overlap, IsGuardedByItsDistanceWhereTheFunctionAsksForIt)
{
    declare_both(128);
    auto recording = recorded([this](Recorder& r) { add(r, r["y"].flat() - r["x"].flat() == 128 ? 2 : 1); });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(distance(*recording), 128);
    EXPECT_NE(recording->entry.header.key.guards_digest, header().key.guards_digest)
        << "another entry than that of other distances";
    EXPECT_EQ(stored_kernel(*recording).grid[0], 2U);
    const MemoryRef other = make(2 * k_count, 30);
    ASSERT_TRUE(replay(*recording, {{other.address, buffer.size / 2}, {other.address + 128, buffer.size / 2}}));
    EXPECT_EQ(other.address.pointer<std::int32_t>()[32], 31);
}

/// The recording has a distance at which the overlap makes no difference; the call has a distance at which it does.
TEST_F(Overlap, IsGuardedWhereTheFunctionAsksForAnotherDistanceThanTheCalls)
{
    declare_both(128);
    const auto in_place = recorded([this](Recorder& r) { add(r, r["y"] == r["x"] ? 2 : 1); });
    ASSERT_TRUE(in_place) << in_place.error().message;
    EXPECT_EQ(distance(*in_place), 128);
    const auto overlapping = take(recorded([this](Recorder& r) {
        const std::uint64_t apart = r["y"].flat() - r["x"].flat();
        add(r, apart != 0 && apart < 1024 ? 2 : 1);
    }));
    EXPECT_EQ(distance(overlapping), 128);
}

TEST_F(Overlap, OfTensorsAtOnePlaceIsGuardedWhereTheFunctionAsks)
{
    declare_both(0);
    const auto recording = recorded([this](Recorder& r) { add(r, r["y"] == r["x"] ? 2 : 1); });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(distance(*recording), 0);
}

TEST_F(Overlap, TensorsThatLieApartAreNotAskedAfter)
{
    declare_both(512 / 2);
    std::size_t calls = 0;
    const auto recording = recorded([&](Recorder& r) {
        ++calls;
        add(r);
    });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(calls, 4U);
}

/// The function y = x + 1, with a further kernel that takes a scalar and does nothing.
class ScalarRanges : public RecordingTest {
protected:
    template <class T>
    void declare_scalar(DType type, double low, double high, T now)
    {
        const NumberDecl scalar = number("s", type, std::pair{low, high});
        interface.scalars = {scalar};
        interface.ranges = {*range_of(scalar)};
        std::uint64_t bits = 0;
        std::memcpy(&bits, &now, sizeof now);
        frame.scalars = {bits};
    }
    Result<Recording> with_scalar(const std::function<bool(std::int32_t)>& goes_another_way)
    {
        return recorded([&](Recorder& r) {
            ++calls;
            const auto value = r.scalar<std::int32_t>("s");
            add(r);
            launch(r, kernel("note", {r["x"]}, value));
            if (goes_another_way(value)) launch(r, kernel("note", {r["x"]}));
        });
    }
    static bool never(std::int32_t) { return false; }
    std::size_t calls = 0;
};

TEST_F(ScalarRanges, OfAFewThousandValuesAreProven)
{
    declare_scalar(DType::i32, 0, 4095, std::int32_t{17});
    record_options.probing = std::chrono::minutes{5};
    const auto recording = take(with_scalar(never));
    EXPECT_THAT(recording.entry.header.info.scalar_proofs, ElementsAre("s: proven at all 4,096 values"));
    EXPECT_GT(calls, 4096U);
    EXPECT_EQ(stored_kernel(recording, 1).params[1].slots.at(0),
              (cachefmt::Slot{cachefmt::SlotKind::scalar, 0, 0, 4, 0}));
    for (const std::int32_t odd : {1, 2047, 3001}) {
        const auto refused = with_scalar([odd](std::int32_t value) { return value == odd; });
        EXPECT_TRUE(failed_with(refused, ErrorCode::not_recordable, "depends on the scalar 's'")) << odd;
    }
}

TEST_F(ScalarRanges, OfMoreAreSampled)
{
    declare_scalar(DType::i32, 0, 1'000'000, std::int32_t{17});
    record_options.probing = std::chrono::minutes{5};
    const auto recording = take(with_scalar(never));
    EXPECT_THAT(recording.entry.header.info.scalar_proofs,
                ElementsAre(testing::MatchesRegex("s: sampled at 4,09[67] of 1,000,001 values")));
    const auto refused = with_scalar([](std::int32_t value) { return (value + 1) % 16 == 0; });
    EXPECT_TRUE(failed_with(refused, ErrorCode::not_recordable, "depends on the scalar 's'"));
}

TEST_F(ScalarRanges, AreProbedAtTheirEndsAndMiddleWithoutAnyTime)
{
    declare_scalar(DType::i32, 0, 4095, std::int32_t{17});
    record_options.probing = std::chrono::milliseconds{0};
    const auto recording = take(with_scalar(never));
    EXPECT_THAT(recording.entry.header.info.scalar_proofs,
                ElementsAre(testing::MatchesRegex("s: sampled at 1[0-9] of 4,096 values")));
    EXPECT_FALSE(with_scalar([](std::int32_t value) { return value == 4095; }));
}

/// BLAS does not read C when beta is 0.
TEST_F(ScalarRanges, OfFloatsAreProbedAtZero)
{
    declare_scalar(DType::f32, -1, 3, 0.5F);
    record_options.probing = std::chrono::milliseconds{0};
    const auto refused = recorded([&](Recorder& r) {
        const auto beta = r.scalar<float>("s");
        add(r);
        auto work = kernel("note", {r["x"]});
        append(work.params.emplace_back().value, beta);
        if (beta != 0.0F) launch(r, work);
    });
    EXPECT_TRUE(failed_with(refused, ErrorCode::not_recordable, "depends on the scalar 's'"));
}

} // namespace
} // namespace warmgraph::test::recording_overlap_test
