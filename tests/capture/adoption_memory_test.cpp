// Memory that an adopted graph reads although its caller does not pass it: scratch with contents, and undeclared
// memory.
#include "adoption_fixture.hpp"

namespace warmgraph::test::adoption_memory_test {
namespace {

/// The graph's first node is moved to another graph, which has left its results in the pool.
class ScratchAdoption : public AdoptionTest {
protected:
    void leave_first_node_to_another_graph()
    {
        for (RawCapture* captured : {first.get(), second.get()}) {
            captured->graph.nodes.erase(captured->graph.nodes.begin());
            captured->graph.nodes[0].dependencies.clear();
        }
    }
    /// Writes the address into the pools of both captures.
    void put_address_into_pools(const Address& address)
    {
        const std::uint64_t word = address.flat();
        for (RawCapture* captured : {first.get(), second.get()})
            std::memcpy(captured->capture.scratch[0].second.address.pointer<std::byte>() + 16, &word, sizeof word);
        left.assign(k_count + 4, 99);
        std::memcpy(left.data() + 4, &word, sizeof word);
    }
    std::vector<std::int32_t> left; // the contents that were left in the pool
};

/// The scratch is two pools of the same size, e.g. workspaces of two handles of one library.
class TwoPools : public AdoptionTest {
protected:
    /// Captures the work one = x + bias; other = one + bias; y = other + bias.
    std::unique_ptr<RawCapture> captured(const MemoryRef& x, const MemoryRef& y, const MemoryRef& one,
                                         const MemoryRef& other)
    {
        auto result = std::make_unique<RawCapture>();
        result->graph.nodes.push_back({kernel("add", {one.address + 16, x.address}, k_count), {}});
        result->graph.nodes.push_back({kernel("add", {other.address + 16, one.address + 16}, k_count), {0}});
        result->graph.nodes.push_back({kernel("add", {y.address, other.address + 16}, k_count), {1}});
        result->capture = {&result->graph, {x, y}, {{"pool0", one}, {"pool1", other}}, {}};
        return result;
    }
    MemoryRef padded(std::int32_t padding)
    {
        (void)make(padding, 0); // lets the regions move by different distances
        return make(k_count + 4, 0);
    }
    const MemoryRef a = make(k_count + 4, 0), b = make(k_count + 4, 0);
    const MemoryRef other_a = padded(700), other_b = padded(1500);
    const MemoryRef other_x = make(k_count, 0), other_y = padded(3000);
};

TEST_F(TwoPools, AreListedInTheSameOrder)
{
    const auto one = captured(frame.memory[0], frame.memory[1], a, b),
               two = captured(other_x, other_y, other_a, other_b);
    const auto recording = adopted(one->capture, &two->capture);
    ASSERT_TRUE(recording) << recording.error().message;
}

TEST_F(TwoPools, AreListedInAnotherOrderInTheSecondCapture)
{
    const auto one = captured(frame.memory[0], frame.memory[1], a, b);
    const auto two = captured(other_x, other_y, other_a, other_b);
    std::swap(two->capture.scratch[0].second, two->capture.scratch[1].second);
    const auto recording = take(adopted(one->capture, &two->capture));
    const auto in_order = captured(other_x, other_y, other_a, other_b);
    const auto expected = take(adopted(one->capture, &in_order->capture));
    EXPECT_EQ(recording.entry.graph, expected.entry.graph);
}

TEST_F(TwoPools, OfWhichOnlyOneIsUsedMayBeListedInAnyOrder)
{
    const auto one = captured(frame.memory[0], frame.memory[1], a, a),
               two = captured(other_x, other_y, other_a, other_a);
    one->capture.scratch[1].second = b;
    two->capture.scratch = {{"pool0", other_b}, {"pool1", other_a}};
    const auto recording = adopted(one->capture, &two->capture);
    ASSERT_TRUE(recording) << recording.error().message;
}

/// In one capture the word points into the first pool, in the other into the second pool: no region explains both
/// values.
TEST_F(TwoPools, OfWhichWordsLeadFromOneToBothAreRefused)
{
    const auto one = captured(frame.memory[0], frame.memory[1], a, b);
    const auto two = captured(other_x, other_y, other_a, other_b);
    two->graph.nodes[2] = {kernel("add", {other_y.address, other_a.address + 16}, k_count), {1}};
    expect_refused(adopted(one->capture, &two->capture), ErrorCode::not_recordable, HasSubstr("follows no region"));
}

TEST_F(ScratchAdoption, WhatAnotherGraphOfThePoolLeftThereIsRefusedByItsRange)
{
    leave_first_node_to_another_graph();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("bytes 0 to 256 of scratch 'pool'"), HasSubstr("reads this memory before it writes"),
                         HasSubstr("Undeclared::constants, which would")));
}

/// The other graph has not run yet: the memory that it will fill still has zeros. It must be refused all the same.
TEST_F(ScratchAdoption, ZerosThatAnotherGraphIsToFillAreRefusedAsWell)
{
    leave_first_node_to_another_graph();
    for (RawCapture* captured : {first.get(), second.get()}) {
        const MemoryRef& its = captured->capture.scratch[0].second;
        std::memset(its.address.pointer(), 0, its.size);
    }
    EXPECT_THAT(message_of(adopted(first->capture, &second->capture)), HasSubstr("reads this memory before it writes"));
    EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 0));
}

TEST_F(ScratchAdoption, WhatIsReadBeforeItIsWrittenIsKeptWhereTheCallerSaysSo)
{
    leave_first_node_to_another_graph();
    keeps_undeclared = true;
    auto recording = take(adopted(first->capture, &second->capture));
    expect_untouched();
    const auto& regions = recording.entry.graph.regions;
    ASSERT_EQ(regions.size(), 5U);
    EXPECT_EQ(regions[3].name, "pool from byte 0");
    EXPECT_EQ(regions[3].kind, RegionKind::constant);
    EXPECT_EQ(regions[3].inside, 2U);
    EXPECT_EQ(regions[4].inside_offset, 256U);
    std::fill_n(pool.address.pointer<std::int32_t>(), k_count + 4, -1); // overwrites the contents of the pool
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    for (int again = 0; again < 2; ++again) {
        ASSERT_TRUE(replay(recording, {x, y}));
        EXPECT_EQ(read(y), all(100));
    }
    most_constant_bytes = 8;
    EXPECT_THAT(message_of(adopted(first->capture, &second->capture)),
                HasSubstr("larger than the 8 bytes that may be stored"));
}

TEST_F(ScratchAdoption, WhatItWritesLaterIsNoConstant)
{
    leave_first_node_to_another_graph();
    keeps_undeclared = true;
    for (RawCapture* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back(
            {kernel("add", {captured->capture.scratch[0].second.address + 16, captured->capture.regions[0].address},
                    k_count),
             {0}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("and the graph writes it later"));
}

TEST_F(ScratchAdoption, AnAddressThatAKernelFollowsThereIsRefusedBeforeAnyReplay)
{
    leave_first_node_to_another_graph();
    put_address_into_pools(frame.memory[0].address);
    for (RawCapture* captured : {first.get(), second.get()})
        std::get<backends::RawKernel>(captured->graph.nodes[0].work).kernel = "follow";
    const auto refused = adopted(first->capture, &second->capture);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("depend on addresses that scratch held"), HasSubstr("at byte 16 of 'pool'")));
    EXPECT_EQ(read(pool), left);
}

TEST_F(ScratchAdoption, AnAddressThatIsLeftThereAndThatNobodyFollowsDoesNoHarm)
{
    put_address_into_pools(frame.memory[0].address);
    auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(read(pool), left);
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
}

/// A graph that reads a library's own memory, which the caller does not declare.
class UndeclaredAdoption : public AdoptionTest {
protected:
    UndeclaredAdoption() { keeps_undeclared = true; }
    /// Adds the work y = table + 1 at the end.
    void read_table()
    {
        for (RawCapture* captured : {first.get(), second.get()})
            captured->graph.nodes.push_back(
                {kernel("add", {captured->capture.regions[1].address, table.address}, k_count), {1}});
    }
    void expect_constant(const Result<Recording>& recording)
    {
        ASSERT_TRUE(recording) << recording.error().message;
        const auto& region = recording->entry.graph.regions.back();
        EXPECT_EQ(region.kind, RegionKind::constant);
        EXPECT_EQ(region.size, table.size);
        EXPECT_TRUE(region.contents.empty());
        EXPECT_TRUE(region.exclusive) << "what nobody declared may be written with what was there";
        const auto blob =
            std::ranges::find(recording->images, region.digest, [](const auto& one) { return one.first; });
        ASSERT_NE(blob, recording->images.end());
        EXPECT_EQ(load<std::int32_t>(blob->second), 30);
        expect_untouched();
    }
    MemoryRef table = make(k_count, 30);
};

TEST_F(UndeclaredAdoption, IsKeptAsAConstantAndNoLongerNeeded)
{
    read_table();
    keeps_undeclared = false;
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("lies in no declared region"));
    keeps_undeclared = true;
    auto recording = adopted(first->capture, &second->capture);
    expect_constant(recording);
    std::fill_n(table.address.pointer<std::int32_t>(), k_count, -1); // overwrites the contents of the library's memory
    expect_replay(*recording, 40, 31);
}

/// The lower half of the table's address is small. Together with the upper half of an old pointer, a size can look like
/// this address.
TEST_F(UndeclaredAdoption, WhereAddressesLookLikeNumbersNothingIsKept)
{
    table = device->allocate_far(k_count * 4);
    ASSERT_LT(table.address.flat() % (1ULL << 32U), 1ULL << 24U);
    std::fill_n(table.address.pointer<std::int32_t>(), k_count, 30);
    read_table();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("lies in no declared region"), HasSubstr("lies at a multiple of 4 GiB")));
}

/// cuDNN's batch norm keeps a flag in page-locked memory.
TEST_F(UndeclaredAdoption, PageLockedMemoryOfALibraryIsKeptAsWell)
{
    table = {device->allocate_host(k_count * 4)->address, k_count * 4};
    std::fill_n(table.address.pointer<std::int32_t>(), k_count, 30);
    read_table();
    auto recording = adopted(first->capture, &second->capture);
    expect_constant(recording);
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(31));
}

TEST_F(UndeclaredAdoption, AVariableThatHoldsItsAddressHoldsTheNewOneInTheReplay)
{
    for (RawCapture* captured : {first.get(), second.get()}) {
        auto& node = captured->graph.nodes[1].work;
        std::get<backends::RawKernel>(node).kernel = "lookup";
        dynamic_cast<FlatModule&>(*std::get<backends::RawKernel>(node).module).table = table.address.flat();
    }
    auto recording = adopted(first->capture, &second->capture);
    expect_constant(recording);
    const auto& variables = recording->entry.graph.images.at(0).variables;
    ASSERT_EQ(variables.size(), 1U);
    EXPECT_EQ(variables[0].slots.size(), 1U);
    EXPECT_EQ(variables[0].contents, Bytes(8)) << "no address of this process is stored";
    std::fill_n(table.address.pointer<std::int32_t>(), k_count, -1);
    expect_replay(*recording, 40, 71);
}

TEST_F(UndeclaredAdoption, ADeclaredConstantInScratchIsRefused)
{
    interface.constants = {{"table", {pool.address + 16, 16}}};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument,
                   HasSubstr("the constant 'table' lies in the scratch 'pool'"));
}

TEST_F(UndeclaredAdoption, WhatIsWrittenIsRefused)
{
    for (RawCapture* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back({kernel("add", {table.address, table.address}, k_count), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("changes the constant 'constant 0'"));
}

TEST_F(UndeclaredAdoption, WhatHoldsAddressesOrIsTooMuchIsRefusedWithTheReason)
{
    read_table();
    most_constant_bytes = table.size - 1;
    expect_refused(
        adopted(first->capture, &second->capture), ErrorCode::not_recordable,
        AllOf(HasSubstr("lies in no declared region"), HasSubstr("is not stored as a constant: it would exceed")));
    most_constant_bytes = table.size;
    const std::uint64_t address = frame.memory[0].address.flat();
    std::memcpy(table.address.pointer<std::byte>() + 16, &address, sizeof address);
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("is not stored as a constant: it holds at byte 16 the address"));
}

} // namespace
} // namespace warmgraph::test::adoption_memory_test
