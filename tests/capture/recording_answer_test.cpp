// Recording and the call's own answer: work that a later process would not do, trials that fail, and too little memory.
#include "recording_fixture.hpp"

namespace warmgraph::test::recording_answer_test {
namespace {

TEST_F(RecordingTest, RunsTheCallableOnceAndCapturesItFromThenOn)
{
    std::vector<bool> captured;
    const auto recording = recorded([&](Recorder& r) {
        captured.push_back(StreamAccess::impl(r.stream()).stream->is_capturing());
        add(r);
    });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_THAT(captured, ElementsAre(false, true, true, true));
}

/// Once, the saved time included the time until the caller asked for the answer: 6.2 s for a call that took 3.1 s.
TEST_F(RecordingTest, AnAnswerThatIsAskedForLongAfterItWasDoneCountsItsOwnTimeAlone)
{
    constexpr std::chrono::milliseconds k_call{40};
    constexpr std::chrono::milliseconds k_idle{300};
    before_asking = [&] { system_clock().sleep_for(k_idle); };
    bool is_answer = true;
    const auto recording = take(recorded([&](Recorder& r) {
        if (std::exchange(is_answer, false)) system_clock().sleep_for(k_call);
        add(r);
    }));
    EXPECT_GE(recording.entry.header.info.answer_ms, 40);
    EXPECT_LT(recording.entry.header.info.answer_ms, 300);
}

TEST_F(RecordingTest, AStateThatEachCallAdvancesIsRecordedAndAdvancedByTheAnswerAlone)
{
    const MemoryRef count = declare("count", RegionKind::state, k_count, 10);
    auto recording = take(recorded([this](Recorder& r) {
        add(r);
        launch(r, kernel("add", {r["count"], r["count"]}, k_count));
    }));
    EXPECT_EQ(read(count), all(11));
    ASSERT_TRUE(replay(recording, {x, y, count}));
    EXPECT_EQ(read(count), all(12));
}

TEST_F(RecordingTest, AnOutputThatIsWrittenOnlyInPartIsRecorded)
{
    const auto recording =
        recorded([this](Recorder& r) { launch(r, kernel("add", {r["y"] + 8, r["x"]}, k_count / 2)); });
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.verification, "bitwise (3 runs)");
}

/// A later process would find an empty table.
TEST_F(RecordingTest, WhatIsInitialisedOnceIsRefusedByRegion)
{
    const MemoryRef table = declare("table", RegionKind::state, k_count, 0);
    bool is_done = false;
    const Callable callable = [&](Recorder& r) {
        if (!std::exchange(is_done, true)) launch(r, kernel("add", {r["table"], r["x"]}, k_count));
        launch(r, kernel("add", {r["y"], r["x"]}, k_count));
    };
    expect_refused(callable, AllOf(HasSubstr("'table'"), HasSubstr("byte 0"), HasSubstr("it initialises or advances")));
    EXPECT_EQ(read(table), all(6)) << "the answer's";
    EXPECT_EQ(read(y), all(6));
}

/// The undeclared table is only read, so its contents do not change. The results show the difference.
TEST_F(RecordingTest, ResultsOfAnUndeclaredFirstCallAreRefusedByRegion)
{
    bool is_first = true;
    expect_refused(
        [&](Recorder& r) {
            add(r);
            if (std::exchange(is_first, false)) launch(r, kernel("add", {r["y"], r["y"]}, k_count));
        },
        AllOf(HasSubstr("'y'"), HasSubstr("gives other results than the call itself")));
    EXPECT_EQ(read(y), all(7));
}

TEST_F(RecordingTest, APhaseThatEachRunOfTheCallableAdvancesIsRefused)
{
    std::int32_t phase = 0;
    expect_refused(
        [&](Recorder& r) {
            launch(r, kernel("add", {r["y"], r["x"]}, k_count - phase));
            phase = (phase + 1) % 4;
        },
        HasSubstr("its second run enqueued something else"));
    EXPECT_EQ(read(y), all(6));
}

TEST_F(RecordingTest, AnExceptionFromACaptureIsARefusalWithItsText)
{
    int calls = 0;
    expect_refused(
        [&](Recorder& r) {
            add(r);
            if (calls++ > 0) throw std::runtime_error("only once");
        },
        HasSubstr("only once"));
    EXPECT_EQ(read(y), all(6));
}

/// This test takes a second, because the trial is only given up after a wait.
TEST_F(RecordingTest, ATrialThatNeverEndsIsGivenUpAndItsMemoryLeaked)
{
    const Callable callable = [this](Recorder& r) {
        const Address part = r.alloc("part", k_count * 4);
        launch(r, kernel("add", {part, r["x"]}, k_count));
        launch(r, kernel("add", {r["y"], part}, k_count));
    };
    ASSERT_TRUE(recorded(callable));
    const std::size_t before = device->live();
    after_answer = [this] { *device->is_stuck = true; };
    expect_refused(callable, AllOf(HasSubstr("took longer than"), HasSubstr("was stopped")));
    EXPECT_TRUE(is_abandoned);
    EXPECT_EQ(device->live(), before + 5) << "x, y, their snapshots, and the scratch";
    EXPECT_EQ(read(y), all(7));
}

class ShortMemory : public RecordingTest {
protected:
    static constexpr std::int32_t k_large = 1 << 18;
    ShortMemory() { device->free = 1U << 18U; }
    Callable spoil = [this](Recorder& r) {
        add(r);
        launch(r, kernel("spoil", {r["large"]}));
    };
};

TEST_F(ShortMemory, LeavesReadOnlyStatesWhereTheyAreAndRecordsAllTheSame)
{
    const MemoryRef large = declare("large", RegionKind::weights, k_large, 3);
    auto recording = take(recorded([this](Recorder& r) {
        add(r);
        launch(r, kernel("sum", {r["y"], r["large"]}, k_large));
    }));
    EXPECT_EQ(recording.entry.header.info.unproven, 0U);
    const MemoryRef other_y = make(k_count, 0), other_large = make(k_large, 1);
    ASSERT_TRUE(replay(recording, {x, other_y, other_large}));
    EXPECT_EQ(*other_y.address.pointer<std::int32_t>(), k_large);
    EXPECT_EQ(*large.address.pointer<std::int32_t>(), 3);
}

TEST_F(ShortMemory, AGraphThatWritesAReadOnlyStateInItsPlaceIsNoOrdinaryFailure)
{
    declare("large", RegionKind::weights, k_large, 3);
    EXPECT_TRUE(failed_with(recorded(spoil), ErrorCode::partly_launched, "'large'"));
}

TEST_F(ShortMemory, AGraphThatWritesACopiedOneIsAnOrdinaryFailure)
{
    const MemoryRef large = declare("large", RegionKind::weights, k_count, 3);
    EXPECT_TRUE(failed_with(recorded(spoil), ErrorCode::verification_failed, "'large'"));
    EXPECT_EQ(read(large), all(3));
}

TEST_F(ShortMemory, RefusesByNameWhatMayBeWrittenAndDoesNotFit)
{
    declare("cache", RegionKind::state, k_large, 3);
    expect_refused(add, AllOf(HasSubstr("'cache'"), HasSubstr("half of the free memory")));
}

} // namespace
} // namespace warmgraph::test::recording_answer_test
