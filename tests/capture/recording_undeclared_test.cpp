// The recorded work reads a library's own memory, which the caller does not declare.
#include "recording_fixture.hpp"

namespace warmgraph::test::recording_undeclared_test {
namespace {

class UndeclaredRecording : public RecordingTest {
protected:
    UndeclaredRecording() { record_options.keeps_undeclared = true; }
    /// The work y = table + 1.
    Callable add_table = [this](Recorder& r) { launch(r, kernel("add", {r["y"], table.address}, k_count)); };
    MemoryRef table = make(k_count, 30);
};

TEST_F(UndeclaredRecording, IsKeptAsAConstantWhereTheCallerSaysSo)
{
    auto recording = take(recorded(add_table));
    EXPECT_EQ(read(y), all(31)) << "the answer";
    const auto& region = recording.entry.graph.regions.back();
    EXPECT_EQ(region.kind, RegionKind::constant);
    EXPECT_EQ(region.size, table.size);
    std::fill_n(table.address.pointer<std::int32_t>(), k_count, -1); // overwrites the contents of the library's memory
    expect_replay(recording, 40, 31);
}

TEST_F(UndeclaredRecording, IsRefusedWhereHeDoesNot)
{
    record_options.keeps_undeclared = false;
    expect_refused(add_table, HasSubstr("lies in no declared region"));
    EXPECT_EQ(read(y), all(31));
}

/// The backward half of the pair writes this memory at every step. So it is refused by name, even if memory of
/// libraries is allowed.
TEST_F(UndeclaredRecording, OfAPairsOtherHalfIsRefusedByNameAndNoConstant)
{
    others = {{"'h' of 'step.forward'", table}};
    expect_refused(add_table,
                   HasSubstr("lies in no declared region but in 'h' of 'step.forward', inside an allocation"));
    others = {{"'z' of 'step.forward'", make(k_count, 1)}};
    EXPECT_TRUE(recorded(add_table)) << "what lies elsewhere changes nothing";
}

/// A trial wrote the memory once more, and others may use it, too. Nothing is restored, and the error says so.
TEST_F(UndeclaredRecording, ThatIsWrittenIsAnErrorThatTellsOfIt)
{
    const Callable count = [this](Recorder& r) {
        launch(r, kernel("add", {table.address, table.address}, k_count));
        launch(r, kernel("add", {r["y"], table.address}, k_count));
    };
    EXPECT_TRUE(failed_with(recorded(count), ErrorCode::partly_launched, "changes the constant 'constant 0'"));
    EXPECT_EQ(read(y), all(32)) << "the answer";
}

TEST_F(UndeclaredRecording, WithAnAddressInItIsRefusedWithTheReason)
{
    const std::uint64_t address = x.address.flat();
    std::memcpy(table.address.pointer<std::byte>() + 16, &address, sizeof address);
    expect_refused(add_table, AllOf(HasSubstr("lies in no declared region"),
                                    HasSubstr("is not stored as a constant: it holds at byte 16 the address")));
}

TEST_F(UndeclaredRecording, OfTheCallItselfIsNoConstant)
{
    const Callable stale = [this](Recorder& r) { launch(r, kernel("add", {r["y"], x.address}, k_count)); };
    expect_refused(stale, HasSubstr("overlaps memory of the call"));
}

} // namespace
} // namespace warmgraph::test::recording_undeclared_test
