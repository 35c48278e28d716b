// Addresses that are stored in memory: no replay could update them.
#include "recording_fixture.hpp"

namespace warmgraph::test::recording_tables_test {
namespace {

class TableTest : public RecordingTest {
protected:
    TableTest() { table = declare("table", RegionKind::input, k_count, 0); }
    void put(std::size_t byte, std::uint64_t word)
    {
        std::memcpy(table.address.pointer<std::byte>() + byte, &word, sizeof word);
    }
    MemoryRef table;
};

TEST_F(TableTest, OfARegionsAddressesIsRefusedByName)
{
    put(20, y.address.flat() + 12);
    const std::string address = fmt::format("{:#x}", y.address.flat() + 12);
    expect_refused(add, AllOf(HasSubstr("'table' holds at byte 20"), HasSubstr(address), HasSubstr("lies in 'y'"),
                              HasSubstr("no_addresses")));
    EXPECT_EQ(read(y), all(6)) << "the answer";
    EXPECT_EQ(read(x), all(5));
}

TEST_F(TableTest, OfALiveAllocationsAddressesIsRefused)
{
    const MemoryRef undeclared = make(k_count, 3);
    put(0, undeclared.address.flat());
    expect_refused(add, AllOf(HasSubstr("'table' holds at byte 0"), HasSubstr("an allocation of 256 bytes")));
}

TEST_F(TableTest, InAReadOnlyStateThatIsNotCopiedIsFoundAsWell)
{
    device->free = 1U << 18U;
    const MemoryRef large = declare("large", RegionKind::weights, 1 << 18, 0);
    const std::uint64_t address = x.address.flat();
    std::memcpy(large.address.pointer<std::byte>() + (1 << 19), &address, sizeof address);
    expect_refused(add, HasSubstr(fmt::format("'large' holds at byte {}", 1 << 19)));
}

TEST_F(TableTest, NumbersThatAreNoAddressesAreNot)
{
    put(0, (x.address.flat() >> 40U << 40U) + 8); // near other memory, but in no allocation
    put(16, ~0ULL);
    put(24, x.address.flat() + (1ULL << 48U));
    const auto recording = recorded(add);
    EXPECT_TRUE(recording) << recording.error().message;
}

TEST_F(TableTest, AChanceNumberIsOverruledByTheCaller)
{
    put(8, x.address.flat());
    interface.regions[2].no_addresses = true;
    const auto recording = recorded(add);
    EXPECT_TRUE(recording) << recording.error().message;
    interface.regions[2].no_addresses = false;
    interface.regions[0].no_addresses = true;
    expect_refused(add, HasSubstr("'table'"));
}

TEST_F(TableTest, FloatingPointHoldsNone)
{
    put(8, x.address.flat());
    frame.tensors[2].dtype = DType::f32;
    const auto recording = recorded(add);
    EXPECT_TRUE(recording) << recording.error().message;
}

} // namespace
} // namespace warmgraph::test::recording_tables_test
