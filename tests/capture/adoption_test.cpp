// Graphs that somebody else captured: proven by a second capture, or taken by range when that is allowed.
#include "flat_fixture.hpp"
#include "number_decl.hpp"
#include "recorder.hpp"
#include "warmgraph/capture/adoption.hpp"

namespace warmgraph::test {
namespace {

using cachefmt::RegionKind;
using testing::AllOf;
using testing::HasSubstr;

class AdoptionTest : public FlatFunction {
protected:
    AdoptionTest()
    {
        declare("x", RegionKind::input, k_count, 5);
        declare("y", RegionKind::output, k_count, -7);
        first = captured(frame.memory, pool);
        const MemoryRef other_pool = make(k_count + 4, 0);
        (void)make(1000, 0); // padding, so that each region moves by a distance of its own
        const MemoryRef other_y = make(k_count, 0);
        (void)make(5000, 0);
        second = captured({make(k_count, 0), other_y}, other_pool);
    }
    /// tmp = x + bias; y = tmp + bias.
    struct Captured {
        backends::RawGraph graph;
        AdoptedCapture capture;
    };
    std::unique_ptr<Captured> captured(std::vector<MemoryRef> regions, const MemoryRef& scratch)
    {
        auto result = std::make_unique<Captured>();
        result->graph.nodes.push_back({kernel("add", {scratch.address + 16, regions[0].address}, k_count), {}});
        result->graph.nodes.push_back({kernel("add", {regions[1].address, scratch.address + 16}, k_count), {0}});
        result->capture = {&result->graph, std::move(regions), {{"pool", scratch}}, {}};
        return result;
    }
    Result<Recording> adopted(const AdoptedCapture& one, const AdoptedCapture* other, Proof proof = Proof::required)
    {
        const Callable none;
        StreamPool streams{device};
        const std::string name = "f";
        const std::shared_ptr<backends::Device> on = device;
        const Subject subject{name, interface, device, run_once({name, interface, none, on, streams})};
        return adopt(subject, frame, header(), one, other,
                     {.proof = proof,
                      .unused = unused,
                      .frozen_variables = frozen,
                      .most_constant_bytes = most_constant_bytes,
                      .keeps_undeclared = keeps_undeclared},
                     modules, phases);
    }
    void expect_refused(const Result<Recording>& result, ErrorCode code, const testing::Matcher<std::string>& why)
    {
        ASSERT_FALSE(result);
        EXPECT_EQ(result.error().code, code);
        EXPECT_THAT(result.error().message, why);
        expect_untouched();
    }
    void expect_untouched()
    {
        EXPECT_EQ(read(frame.memory[0]), all(5));
        EXPECT_EQ(read(frame.memory[1]), all(-7));
        EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 99));
    }
    MemoryRef pool = make(k_count + 4, 99);
    UnusedWords unused = UnusedWords::tried;
    std::vector<std::string> frozen;
    std::uint64_t most_constant_bytes = 1 << 20;
    bool keeps_undeclared = false;
    std::unique_ptr<Captured> first, second;
};

TEST_F(AdoptionTest, AnOutputThatHoldsTheRightResultsAlreadyProvesNothing)
{
    std::fill_n(frame.memory[1].address.pointer<std::int32_t>(), k_count, 7); // as its owner's warm-up left it
    device->restores_nothing = true;
    const auto refused = adopted(first->capture, &second->capture);
    ASSERT_FALSE(refused);
    EXPECT_EQ(refused.error().code, ErrorCode::verification_failed) << refused.error().message;
    EXPECT_EQ(read(frame.memory[1]), all(7));
}

TEST_F(AdoptionTest, WithTwoCapturesEveryWordIsProvenAndTheCallersMemoryIsAsItWas)
{
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    expect_untouched();
    const auto& info = recording->entry.header.info;
    EXPECT_EQ(info.unproven, 0U);
    EXPECT_EQ(info.verification, "bitwise (3 runs)");
    const auto& regions = recording->entry.graph.regions;
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[2].name, "pool");
    EXPECT_EQ(regions[2].kind, RegionKind::arena);

    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
    EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 99)) << "the restored graph has its own";
}

/// As PyTorch's pools often lie: the end of the one is the start of the other, in both captures.
TEST_F(AdoptionTest, ScratchSideBySideInBothCapturesIsOneRegion)
{
    for (Captured* captured : {first.get(), second.get()}) {
        auto& [name, memory] = captured->capture.scratch[0];
        const MemoryRef start{memory.address, 16},
            rest{memory.address + 16, memory.size - 16}; // kernels work from there
        captured->capture.scratch = {{"start", start}, {"pool", rest}};
    }
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    const auto& regions = recording->entry.graph.regions;
    ASSERT_EQ(regions.size(), 3U);
    EXPECT_EQ(regions[2].name, "start");
    EXPECT_EQ(regions[2].size, pool.size);
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
    expect_untouched();
}

TEST_F(AdoptionTest, WithOneCaptureItIsRefusedUnlessUnprovenAddressesAreAllowed)
{
    expect_refused(adopted(first->capture, nullptr), ErrorCode::not_recordable,
                   AllOf(HasSubstr("second capture"), HasSubstr("'pool'")));
    auto recording = adopted(first->capture, nullptr, Proof::allow_unproven);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unproven, 4U);
    expect_untouched();
    const MemoryRef x = make(k_count, 1), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(3));
}

TEST_F(AdoptionTest, ASecondCaptureOfOtherWorkIsRefused)
{
    std::get<backends::RawKernel>(second->graph.nodes[1].work).grid[0] = 2;
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 1)"), HasSubstr("grid")));
}

/// Graphs of which the first nodes are another graph's, which left its results in the pool.
class ScratchAdoption : public AdoptionTest {
protected:
    void leave_first_node_to_another_graph()
    {
        for (Captured* captured : {first.get(), second.get()}) {
            captured->graph.nodes.erase(captured->graph.nodes.begin());
            captured->graph.nodes[0].dependencies.clear();
        }
    }
    /// In both captures' pools.
    void put_address_into_pools(const Address& address)
    {
        const std::uint64_t word = address.flat();
        for (Captured* captured : {first.get(), second.get()})
            std::memcpy(captured->capture.scratch[0].second.address.pointer<std::byte>() + 16, &word, sizeof word);
        left.assign(k_count + 4, 99);
        std::memcpy(left.data() + 4, &word, sizeof word);
    }
    std::vector<std::int32_t> left; // in the pool
};

TEST_F(ScratchAdoption, WhatAnotherGraphOfThePoolLeftThereIsRefusedByItsRange)
{
    leave_first_node_to_another_graph();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("bytes 0 to 256 of scratch 'pool'"), HasSubstr("reads before it writes"),
                         HasSubstr("Undeclared::constants is off")));
}

/// The other graph has not run yet: what it is to leave there is zeros, as everywhere.
TEST_F(ScratchAdoption, ZerosThatAnotherGraphIsToFillAreRefusedAsWell)
{
    leave_first_node_to_another_graph();
    for (Captured* captured : {first.get(), second.get()}) {
        const MemoryRef& its = captured->capture.scratch[0].second;
        std::memset(its.address.pointer(), 0, its.size);
    }
    const auto refused = adopted(first->capture, &second->capture);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("reads before it writes"));
    EXPECT_EQ(read(pool), std::vector<std::int32_t>(k_count + 4, 0));
}

TEST_F(ScratchAdoption, WhatIsReadBeforeItIsWrittenIsKeptWhereTheCallerSaysSo)
{
    leave_first_node_to_another_graph();
    keeps_undeclared = true;
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    expect_untouched();
    const auto& regions = recording->entry.graph.regions;
    ASSERT_EQ(regions.size(), 5U);
    EXPECT_EQ(regions[3].name, "pool from byte 0");
    EXPECT_EQ(regions[3].kind, RegionKind::constant);
    EXPECT_EQ(regions[3].inside, 2U);
    EXPECT_EQ(regions[4].inside_offset, 256U);
    std::fill_n(pool.address.pointer<std::int32_t>(), k_count + 4, -1); // the pool is gone
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    for (int again = 0; again < 2; ++again) {
        ASSERT_TRUE(replay(*recording, {x, y}));
        EXPECT_EQ(read(y), all(100));
    }
    most_constant_bytes = 8;
    const auto refused = adopted(first->capture, &second->capture);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message, HasSubstr("more than the 8 bytes that may be kept"));
}

TEST_F(ScratchAdoption, WhatItWritesLaterIsNoConstant)
{
    leave_first_node_to_another_graph();
    keeps_undeclared = true;
    for (Captured* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back(
            {kernel("add", {captured->capture.scratch[0].second.address + 16, captured->capture.regions[0].address},
                    k_count),
             {0}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("and it writes there later"));
}

TEST_F(ScratchAdoption, AnAddressThatAKernelFollowsThereIsRefusedBeforeAnyReplay)
{
    leave_first_node_to_another_graph();
    put_address_into_pools(frame.memory[0].address);
    for (Captured* captured : {first.get(), second.get()})
        std::get<backends::RawKernel>(captured->graph.nodes[0].work).kernel = "follow";
    const auto refused = adopted(first->capture, &second->capture);
    ASSERT_FALSE(refused);
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("follow addresses that scratch held"), HasSubstr("at byte 16 of 'pool'")));
    EXPECT_EQ(read(pool), left);
}

TEST_F(ScratchAdoption, AnAddressThatIsLeftThereAndThatNobodyFollowsDoesNoHarm)
{
    put_address_into_pools(frame.memory[0].address);
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(read(pool), left);
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
}

TEST_F(AdoptionTest, WorkThatWritesPastADeclaredRegionIsFoundOnTheCopies)
{
    // The original has room behind y; the restored one must not rely on it.
    frame.tensors[1].sizes[0] = k_count - 8;
    const auto result = adopted(first->capture, &second->capture);
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, ErrorCode::verification_failed);
    EXPECT_THAT(result.error().message, HasSubstr("outside 'y'"));
}

TEST_F(AdoptionTest, EventsOfTheSecondCaptureAreMatchedByName)
{
    const auto add_event = [](Captured& to, std::uint64_t handle) {
        to.graph.nodes.push_back({backends::RawEventRecord{handle}, {1}});
        to.capture.handles.events = {{"done", handle}};
    };
    add_event(*first, 100);
    add_event(*second, 200);
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.graph.events, std::vector<std::string>{"done"});
}

TEST_F(AdoptionTest, ATexturesHandleIsRefused)
{
    device->textures->live = {{7, 11}};
    first->graph.nodes.push_back({fetch(first->capture.regions[1].address, 7), {1}});
    second->graph.nodes.push_back({fetch(second->capture.regions[1].address, 7), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel fetch (node 2)"), HasSubstr("parameter 1 byte 0"), HasSubstr("texture")));
    EXPECT_FALSE(device->textures->was_misused);
}

/// As recordings are: nothing runs on copies where one of these could be met.
TEST_F(AdoptionTest, ManagedMemoryIsRefused)
{
    device->managed = frame.memory[0].address.flat();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("'x' is managed memory"));
}

TEST_F(AdoptionTest, ACollectiveIsRefused)
{
    for (auto* const one : {first.get(), second.get()})
        std::get<backends::RawKernel>(one->graph.nodes[1].work).kernel = "ncclDevKernel_AllReduce_Sum_f32_RING_LL";
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("a collective of NCCL"));
}

TEST_F(AdoptionTest, AnAddressInMemoryIsRefusedUnlessItIsSaidToBeNone)
{
    const MemoryRef x = frame.memory[0];
    const std::uint64_t word = frame.memory[1].address.flat();
    std::memcpy(x.address.pointer<std::int32_t>() + 4, &word, sizeof word);
    auto result = adopted(first->capture, &second->capture);
    ASSERT_FALSE(result);
    EXPECT_THAT(result.error().message, AllOf(HasSubstr("'x' holds at byte 16"), HasSubstr("lies in 'y'")));
    EXPECT_EQ(read(frame.memory[1]), all(-7));
    interface.regions[0].no_addresses = true;
    EXPECT_TRUE(adopted(first->capture, &second->capture));
}

TEST_F(AdoptionTest, AVariableThatDiffersFromItsImageIsRefusedUnlessItIsFrozen)
{
    module->bias = 7;
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("'bias'"), HasSubstr("Spec::frozen_variables")));
    frozen = {"bias"};
    EXPECT_TRUE(adopted(first->capture, &second->capture));
    frozen.clear();
    module->constant = "bias";
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording);
    EXPECT_EQ(recording->entry.header.info.library_constants, 1U);
}

TEST_F(AdoptionTest, AVariableThatTheProgramAskedForIsRefusedUnlessItIsFrozen)
{
    device->exposed = {"bias"};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("'bias' may be written or read between calls"));
    frozen = {"*"};
    EXPECT_TRUE(adopted(first->capture, &second->capture));
}

/// Words that differ between the captures and follow nothing: zeros, all together, and the results tell.
class UnusedWordAdoption : public AdoptionTest {
protected:
    Result<MemoryRef> allocation = device->allocate(0x8000);
    /// The second kernel gets one more parameter, which it does not read.
    void add_tail(std::uint64_t one, std::uint64_t other)
    {
        for (auto [captured, word] : {std::pair{first.get(), one}, std::pair{second.get(), other}}) {
            auto& params = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params;
            Bytes& value = params.emplace_back().value;
            append(value, std::uint64_t{5});
            for (int i = 0; i < 6; ++i) append(value, word + static_cast<std::uint64_t>(i));
        }
    }
    /// ... a struct of the pool's address and of the lower half of another one, stale, with a number above it.
    void add_torn()
    {
        for (Captured* captured : {first.get(), second.get()}) {
            const std::uint64_t at = captured->capture.scratch[0].second.address.flat();
            auto& params = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params;
            Bytes& value = params.emplace_back().value;
            append(value, at);
            append(value, (at & 0xFFFF'FFFFU) | std::uint64_t{1} << 32U);
        }
    }
    /// Nobody's any more; as far from each other as no two regions are.
    MemoryRef stale{allocation->address, 16}, stale_too{allocation->address + 0x7770, 16};
    void set_count(Captured& captured, std::size_t node, std::int32_t count)
    {
        Bytes value;
        append(value, count);
        std::get<backends::RawKernel>(captured.graph.nodes[node].work).params[2].value = value;
    }
};

TEST_F(UnusedWordAdoption, ThatNoKernelReadsAreStoredAsZerosAndCounted)
{
    add_tail(0x1234'5678'9abc'def0, 0x7777'5555'3333'1111);
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unused_words, 6U);
    Bytes expected(56);
    expected[0] = std::byte{5};
    EXPECT_EQ(stored_kernel(*recording, 1).params.at(3).value, expected);
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
    expect_untouched();
}

TEST_F(UnusedWordAdoption, AreRefusedForWhoIsStrict)
{
    add_tail(0x1234'5678'9abc'def0, 0x7777'5555'3333'1111);
    unused = UnusedWords::refused;
    expect_refused(
        adopted(first->capture, &second->capture), ErrorCode::not_recordable,
        AllOf(HasSubstr("kernel add (node 1)"), HasSubstr("parameter 3 byte 8"), HasSubstr("follows no region")));
}

/// A counter, as many elements as it has counted so far.
TEST_F(UnusedWordAdoption, OnesThatTheResultsDependOnAreFoundAmongTheOthersAndRefused)
{
    add_tail(0x1234'5678'9abc'def0, 0x7777'5555'3333'1111);
    set_count(*second, 1, k_count - 1);
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 1) takes at parameter 2 byte 0"), HasSubstr("0x40 and then 0x3f"),
                         HasSubstr("the results depend on it")));
}

TEST_F(UnusedWordAdoption, APointerIntoUndeclaredMemoryIsRefusedUnrun)
{
    const MemoryRef one = make(4, 1), other = make(4, 2);
    add_tail(one.address.flat(), other.address.flat());
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("parameter 3 byte 8"), HasSubstr("follows no region")));
}

/// What another computation left behind: its memory went back to the framework's allocator, which kept the allocation.
TEST_F(UnusedWordAdoption, AStalePointerIntoABlockThatNobodyOwnedIsAnUnusedWord)
{
    add_tail(stale.address.flat(), stale_too.address.flat());
    first->capture.free_blocks = {{stale.address, stale.size}};
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unused_words, 6U);
    expect_untouched();
}

/// Of another segment of the framework's, which begins where the region ends and is gone.
TEST_F(UnusedWordAdoption, OneAtTheEndOfARegionThatItDoesNotFollowIsAnUnusedWord)
{
    device->lead = 4096; // nothing lies behind any allocation
    const MemoryRef alone = make(k_count, 1);
    first = captured({frame.memory[0], frame.memory[1]}, pool);
    first->capture.scratch.emplace_back("alone", alone);
    second->capture.scratch.emplace_back("alone", make(k_count, 1));
    add_tail(alone.address.flat() + alone.size, 0);
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
}

TEST_F(UnusedWordAdoption, OneThatWasStaleInTheSecondCaptureAloneIsAnUnusedWordToo)
{
    add_tail(stale.address.flat(), stale_too.address.flat());
    second->capture.free_blocks = {{stale_too.address, stale_too.size}};
    const auto recording = adopted(first->capture, &second->capture);
    EXPECT_TRUE(recording) << recording.error().message;
}

/// A word means the same in both captures: where one of them could not follow it, nobody does.
TEST_F(UnusedWordAdoption, OneThatIsNoDeviceAddressInTheSecondCaptureIsAnUnusedWordToo)
{
    static const int s_on_the_host = 1;
    const MemoryRef one = make(4, 1);
    const std::uint64_t none[] = {0xf3cf'3c00'1d9d'b000, reinterpret_cast<std::uintptr_t>(&s_on_the_host)};
    for (const std::uint64_t other : none) {
        add_tail(one.address.flat(), other);
        EXPECT_TRUE(adopted(first->capture, &second->capture)) << other;
        for (Captured* captured : {first.get(), second.get()})
            std::get<backends::RawKernel>(captured->graph.nodes[1].work).params.pop_back();
    }
}

TEST_F(UnusedWordAdoption, HalfOfAStalePointerIsNoPointerTogetherWithHalfOfAWholeOne)
{
    add_torn();
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unused_words, 1U);
}

TEST_F(UnusedWordAdoption, AStalePointerThatIsTheSameInBothCapturesStaysAsItIs)
{
    const MemoryRef one = make(4, 0);
    add_tail(one.address.flat(), one.address.flat());
    first->capture.free_blocks = {{one.address, one.size}};
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unused_words, 0U);
}

/// The upper half of an old pointer behind a small number, in memory that is somebody's in both captures.
class SuspectAdoption : public UnusedWordAdoption {
protected:
    SuspectAdoption() { std::fill_n(theirs.address.pointer<std::int32_t>(), k_count, 30); }
    std::uint64_t number_and_upper_half() const { return theirs.address.flat() + low(); }
    static std::uint64_t low() { return 4; }
    MemoryRef theirs = device->allocate_far(k_count * 4);
};

TEST_F(SuspectAdoption, WhatNoKernelFollowsBecomesZeroAndIsCounted)
{
    add_tail(number_and_upper_half(), number_and_upper_half());
    const std::size_t before = device->live();
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    expect_untouched();
    EXPECT_EQ(device->live(), before + 1) << "the restored graph's scratch, and no decoy";
    EXPECT_EQ(recording->entry.header.info.unused_words, 6U);
    const Bytes& value = stored_kernel(*recording, 1).params.at(3).value;
    for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(load<std::uint64_t>(value, 8 + 8 * i), low() + i);
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(42));
}

/// In ATen's reductions the number is not at a multiple of 8, and other small numbers stand around.
TEST_F(SuspectAdoption, OtherNumbersMakeNoPointerWithAHalfThatIsTried)
{
    for (Captured* captured : {first.get(), second.get()}) {
        captured->capture.scratch.emplace_back("near",
                                               device->allocate_far(64)); // of the call, so halves are looked at
        auto& params = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params;
        Bytes& value = params.emplace_back().value;
        for (const std::uint32_t half : {std::uint32_t{33}, std::uint32_t{7},
                                         static_cast<std::uint32_t>(theirs.address.flat() >> 32U), std::uint32_t{65}})
            append(value, half);
    }
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unused_words, 1U);
    EXPECT_EQ(load<std::uint32_t>(stored_kernel(*recording, 1).params.at(3).value, 8), 0U);
}

TEST_F(SuspectAdoption, WhatIsReadIsRefusedAsAPointer)
{
    for (Captured* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back(
            {kernel("add", {captured->capture.regions[1].address, theirs.address + low()}, 16), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 2)"), HasSubstr("lies in no declared region")));
}

TEST_F(SuspectAdoption, WhatIsWrittenIsRefusedAsAPointer)
{
    for (Captured* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back(
            {kernel("add", {theirs.address + low(), captured->capture.regions[0].address}, 16), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 2)"), HasSubstr("lies in no declared region")));
}

/// What may well be a pointer is never run as if it were none.
TEST_F(SuspectAdoption, WhatIsAlignedOrFarInsideIsRefusedUntried)
{
    const MemoryRef large = device->allocate_far(1 << 20);
    for (const std::uint64_t word : {theirs.address.flat() + 16, large.address.flat() + (1 << 16) + 4}) {
        add_tail(word, word);
        const auto refused = adopted(first->capture, &second->capture);
        ASSERT_FALSE(refused);
        EXPECT_THAT(refused.error().message, HasSubstr("lies in no declared region"));
        for (Captured* captured : {first.get(), second.get()})
            std::get<backends::RawKernel>(captured->graph.nodes[1].work).params.pop_back();
    }
}

TEST_F(SuspectAdoption, WhereZerosLieNothingCanBeTold)
{
    std::fill_n(theirs.address.pointer<std::int32_t>(), k_count, 0);
    add_tail(number_and_upper_half(), number_and_upper_half());
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("zeros lie there, so that no trial can tell"));
}

TEST_F(SuspectAdoption, WhoIsStrictHasThemRefusedUntried)
{
    unused = UnusedWords::refused;
    add_tail(number_and_upper_half(), number_and_upper_half());
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("lies in no declared region"));
}

TEST_F(UnusedWordAdoption, WhatTheGraphUsesIsNotFree)
{
    add_tail(frame.memory[1].address.flat() + 8, second->capture.scratch[0].second.address.flat());
    first->capture.free_blocks = {{frame.memory[1].address, frame.memory[1].size}};
    second->capture.free_blocks = {second->capture.scratch[0].second};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("follows no region"));
}

/// Memory of a library's own, which the graph reads and nobody declares.
class UndeclaredAdoption : public AdoptionTest {
protected:
    UndeclaredAdoption() { keeps_undeclared = true; }
    /// y = table + 1, at the end.
    void read_table()
    {
        for (Captured* captured : {first.get(), second.get()})
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
    std::fill_n(table.address.pointer<std::int32_t>(), k_count, -1); // the library's is gone
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(31));
}

/// As cuDNN's batch norm has its flag.
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
    for (Captured* captured : {first.get(), second.get()}) {
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
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    ASSERT_TRUE(replay(*recording, {x, y}));
    EXPECT_EQ(read(y), all(71));
}

TEST_F(UndeclaredAdoption, ADeclaredConstantInScratchIsRefused)
{
    interface.constants = {{"table", {pool.address + 16, 16}}};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument,
                   HasSubstr("the constant 'table' lies in the scratch 'pool'"));
}

TEST_F(UndeclaredAdoption, WhatIsWrittenIsRefused)
{
    for (Captured* captured : {first.get(), second.get()})
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
        AllOf(HasSubstr("lies in no declared region"), HasSubstr("is not kept as a constant: it would be more")));
    most_constant_bytes = table.size;
    const std::uint64_t address = frame.memory[0].address.flat();
    std::memcpy(table.address.pointer<std::byte>() + 16, &address, sizeof address);
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("is not kept as a constant: it holds at byte 16 the address"));
}

class SemaphoreAdoption : public AdoptionTest {
protected:
    SemaphoreAdoption()
    {
        semaphores_run().clear();
        use(*first, 100, 5);
        use(*second, 200, 8);
    }
    /// Waits for `at` before the work, and signals `at` + 1 and a constant after it.
    static void use(Captured& to, std::uint64_t handle, std::uint64_t at)
    {
        using enum backends::SemaphoreAction;
        to.graph.nodes.push_back({backends::RawSemaphores{signal, {{handle + 1, at + 1, 0}, {handle, 77, 0}}}, {1}});
        to.graph.nodes.push_back({backends::RawSemaphores{wait, {{handle, at, 0}}}, {}});
        to.capture.handles.semaphores = {{"shown", handle + 1}, {"ready", handle}};
        to.capture.scalars = {at};
    }
    void declare_frame()
    {
        interface.scalars = {number("frame", DType::u64, std::pair{0.0, 1000.0})};
        interface.ranges = {{0, 1000}};
        frame.scalars = {5};
    }
};

TEST_F(SemaphoreAdoption, NamesThemFollowsTheFrameAndRunsNone)
{
    declare_frame();
    auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    expect_untouched();
    EXPECT_TRUE(semaphores_run().empty());
    EXPECT_EQ(recording->entry.header.info.verification, "bitwise (3 runs), without its semaphores");
    const auto& graph = recording->entry.graph;
    EXPECT_EQ(graph.semaphores, (std::vector<std::string>{"shown", "ready"}));
    const auto& stored = std::get<cachefmt::SemaphoresNode>(graph.nodes[2]);
    EXPECT_EQ(stored.uses[0].slot, (cachefmt::Slot{cachefmt::SlotKind::scalar, 0, 0, 8, 1}));
    EXPECT_EQ(stored.uses[1], (cachefmt::SemaphoreUse{1, 77, {}, 0}));

    // What was verified is what runs now, with its semaphores: of the first capture, for the frame of the call.
    const MemoryRef x = make(k_count, 40), y = make(k_count, 0);
    auto stream = *device->create_stream();
    replay::Bindings bindings{{x, y, {}}, {41}};
    bindings.regions.resize(graph.regions.size());
    ASSERT_TRUE(recording->executable->launch(*stream, bindings));
    EXPECT_EQ(read(y), all(42));
    using enum backends::SemaphoreAction;
    EXPECT_EQ(semaphores_run(),
              (std::vector<backends::RawSemaphores>{{signal, {{101, 42, 0}, {100, 77, 0}}}, {wait, {{100, 41, 0}}}}));
    ASSERT_TRUE(recording->executable->rehearse(*stream, bindings));
    EXPECT_EQ(semaphores_run().size(), 2U) << "a rehearsal runs none";
}

TEST_F(SemaphoreAdoption, AValueThatNoScalarExplainsIsRefused)
{
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("semaphore signal (node 2)"), HasSubstr("the value 6 and in another capture 9")));
    declare_frame();
    second->capture.scalars = {9};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("a constant, or a declared scalar plus a constant"));
    EXPECT_TRUE(semaphores_run().empty());
}

TEST_F(SemaphoreAdoption, AScalarMustDifferBetweenTheCapturesAndBeFollowed)
{
    declare_frame();
    second->capture.scalars = {5};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("'frame'"), HasSubstr("must differ")));
    second->capture.scalars = {};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument, HasSubstr("0 scalars"));
    interface.scalars.push_back(number("other", DType::i32, std::pair{0.0, 10.0}));
    interface.ranges.push_back({0, 10});
    frame.scalars = {5, 1};
    first->capture.scalars = {5, 1};
    second->capture.scalars = {8, 4};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("'other'"), HasSubstr("so is another one")));
    second->capture.scalars = {8, 5};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("follows the scalar 'other'"), HasSubstr("Spec::values")));
}

TEST_F(SemaphoreAdoption, UndeclaredOnesAreRefused)
{
    declare_frame();
    first->capture.handles.semaphores.pop_back();
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("semaphore"), HasSubstr("Spec::semaphores")));
    EXPECT_TRUE(semaphores_run().empty());
}

TEST_F(SemaphoreAdoption, BesideMemoryOfTheGraphsOwnTheyAreRefused)
{
    declare_frame();
    for (auto* one : {&*first, &*second}) one->graph.allocations = {{make(16, 0)}};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("allocates 64 bytes"), HasSubstr("NativeCapture::scratch")));
}

TEST_F(AdoptionTest, WrongArgumentsAreNamed)
{
    AdoptedCapture wrong = first->capture;
    wrong.regions[1] = make(k_count, 0);
    expect_refused(adopted(wrong, nullptr), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("'y'"), HasSubstr("first capture")));
    wrong = first->capture;
    wrong.graph = nullptr;
    expect_refused(adopted(wrong, nullptr), ErrorCode::invalid_argument, HasSubstr("null"));
    interface.scalars.push_back(number("n", DType::i32, std::pair{0.0, 10.0}));
    expect_refused(adopted(first->capture, nullptr), ErrorCode::invalid_argument,
                   AllOf(HasSubstr("scalar 'n'"), HasSubstr("Spec::values")));
}

} // namespace
} // namespace warmgraph::test
