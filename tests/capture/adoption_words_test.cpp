// Words in an adopted graph's parameters that do not move with a region: unused words, stale addresses, halves of
// addresses.
#include <filesystem>
#include <fstream>

#include <stdlib.h>

#include "adoption_fixture.hpp"
#include "temp_dir.hpp"

namespace warmgraph::test::adoption_words_test {
namespace {

/// A parameter has words that differ between the captures and do not move with a region. In a trial all these words are
/// zero: if a kernel uses one of them, the results differ.
class UnusedWordAdoption : public AdoptionTest {
protected:
    Result<MemoryRef> allocation = device->allocate(0x8000);
    /// Adds a parameter with such words to the second kernel, which does not read it.
    void add_tail(std::uint64_t one, std::uint64_t other)
    {
        for (auto [captured, word] : {std::pair{first.get(), one}, std::pair{second.get(), other}}) {
            auto& params = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params;
            Bytes& value = params.emplace_back().value;
            append(value, std::uint64_t{5});
            for (int i = 0; i < 6; ++i) append(value, word + static_cast<std::uint64_t>(i));
        }
    }
    /// Adds a struct with two words: the pool's address, and the lower half of that address with a small number above
    /// it.
    void add_torn()
    {
        for (RawCapture* captured : {first.get(), second.get()}) {
            const std::uint64_t at = captured->capture.scratch[0].second.address.flat();
            auto& params = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params;
            Bytes& value = params.emplace_back().value;
            append(value, at);
            append(value, (at & 0xFFFF'FFFFU) | std::uint64_t{1} << 32U);
        }
    }
    /// Addresses in freed memory. Their distance is not the distance between any two regions.
    MemoryRef stale{allocation->address, 16}, stale_too{allocation->address + k_stale, 16};
    void set_count(RawCapture& captured, std::size_t node, std::int32_t count)
    {
        Bytes value;
        append(value, count);
        std::get<backends::RawKernel>(captured.graph.nodes[node].work).params[2].value = value;
    }
};

TEST_F(UnusedWordAdoption, ThatNoKernelReadsAreStoredAsZerosAndCounted)
{
    add_tail(0x1234'5678'9abc'def0, 0x7777'5555'3333'1111);
    auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 6U);
    Bytes expected(56);
    expected[0] = std::byte{5};
    EXPECT_EQ(stored_kernel(recording, 1).params.at(3).value, expected);
    expect_replay(recording, 40, 42);
    expect_untouched();
}

std::string text_of(const std::filesystem::path& path)
{
    std::ifstream file{path};
    return {std::istreambuf_iterator<char>{file}, {}};
}

TEST_F(UnusedWordAdoption, ARefusalIsWrittenDownForABugReport)
{
    const TempDir folder;
    const auto dumps = folder.path() / "new";
    ASSERT_EQ(::setenv("WARMGRAPH_DUMP", dumps.c_str(), 1), 0);
    add_tail(0x1234'5678'9abc'def0, 0x7777'5555'3333'1111);
    static_cast<void>(take(adopted(first->capture, &second->capture)));
    EXPECT_FALSE(std::filesystem::exists(dumps)) << "nothing was refused";
    unused = UnusedWords::refused;
    EXPECT_FALSE(adopted(first->capture, &second->capture));
    EXPECT_FALSE(adopted(first->capture, nullptr));
    ::unsetenv("WARMGRAPH_DUMP");
    EXPECT_FALSE(adopted(first->capture, &second->capture));
    std::vector<std::string> texts;
    for (const auto& file : std::filesystem::directory_iterator(dumps)) texts.push_back(text_of(file.path()));
    ASSERT_EQ(texts.size(), 2U);
    std::ranges::sort(texts, {}, &std::string::size);
    EXPECT_THAT(texts[0], AllOf(HasSubstr("refused to record 'f'"), Not(HasSubstr("and then"))));
    EXPECT_THAT(texts[1], AllOf(HasSubstr("follows no region"), HasSubstr("\nkernel add (node 1)\n"),
                                HasSubstr("0 bytes into 'y'"), HasSubstr("16 bytes into scratch 'pool'"),
                                HasSubstr("parameter 3 byte 8: 0x123456789abcdef0 and then 0x7777555533331111\n"),
                                HasSubstr("parameter 3 byte 0: 0x5\n")));
}

TEST_F(UnusedWordAdoption, AreRefusedForWhoIsStrict)
{
    add_tail(0x1234'5678'9abc'def0, 0x7777'5555'3333'1111);
    unused = UnusedWords::refused;
    expect_refused(
        adopted(first->capture, &second->capture), ErrorCode::not_recordable,
        AllOf(HasSubstr("kernel add (node 1)"), HasSubstr("parameter 3 byte 8"), HasSubstr("follows no region")));
}

/// The kernel's element count differs between the captures, e.g. because it is a counter.
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

/// The word is a pointer that another computation left. Its memory went back to the framework's allocator, which kept
/// the allocation.
TEST_F(UnusedWordAdoption, AStalePointerIntoABlockThatNobodyOwnedIsAnUnusedWord)
{
    add_tail(stale.address.flat(), stale_too.address.flat());
    first->capture.free_blocks = {{stale.address, stale.size}};
    const auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 6U);
    expect_untouched();
}

/// The word points to another segment of the framework. This segment began where the region ends, and is freed.
TEST_F(UnusedWordAdoption, OneAtTheEndOfARegionThatItDoesNotFollowIsAnUnusedWord)
{
    device->lead = 4096; // leaves a gap, so that no other memory begins at the end of an allocation
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

/// A kernel could only use the word as an address if it was an address in both captures.
TEST_F(UnusedWordAdoption, OneThatIsNoDeviceAddressInTheSecondCaptureIsAnUnusedWordToo)
{
    static const int s_on_the_host = 1;
    const MemoryRef one = make(4, 1);
    const std::uint64_t none[] = {0xf3cf'3c00'1d9d'b000, reinterpret_cast<std::uintptr_t>(&s_on_the_host)};
    for (const std::uint64_t other : none) {
        add_tail(one.address.flat(), other);
        EXPECT_TRUE(adopted(first->capture, &second->capture)) << other;
        for (RawCapture* captured : {first.get(), second.get()})
            std::get<backends::RawKernel>(captured->graph.nodes[1].work).params.pop_back();
    }
}

TEST_F(UnusedWordAdoption, HalfOfAStalePointerIsNoPointerTogetherWithHalfOfAWholeOne)
{
    add_torn();
    const auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 1U);
}

TEST_F(UnusedWordAdoption, AStalePointerThatIsTheSameInBothCapturesStaysAsItIs)
{
    const MemoryRef one = make(4, 0);
    add_tail(one.address.flat(), one.address.flat());
    first->capture.free_blocks = {{one.address, one.size}};
    const auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 0U);
}

/// A small number, and behind it the upper half of an old pointer. Together they look like an address in `theirs`.
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
    auto recording = take(adopted(first->capture, &second->capture));
    expect_untouched();
    EXPECT_EQ(device->live(), before + 1) << "the restored graph's scratch, and no decoy";
    EXPECT_EQ(recording.entry.header.info.unused_words, 6U);
    const Bytes& value = stored_kernel(recording, 1).params.at(3).value;
    for (std::uint64_t i = 0; i < 6; ++i) EXPECT_EQ(load<std::uint64_t>(value, 8 + 8 * i), low() + i);
    expect_replay(recording, 40, 42);
}

/// In ATen's reductions such a number is not at a multiple of 8, and there are other small numbers near it.
TEST_F(SuspectAdoption, OtherNumbersMakeNoPointerWithAHalfThatIsTried)
{
    for (RawCapture* captured : {first.get(), second.get()}) {
        captured->capture.scratch.emplace_back("near",
                                               // Halves of addresses are checked against this scratch.
                                               device->allocate_far(64));
        auto& params = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params;
        Bytes& value = params.emplace_back().value;
        for (const std::uint32_t half : {std::uint32_t{33}, std::uint32_t{7},
                                         static_cast<std::uint32_t>(theirs.address.flat() >> 32U), std::uint32_t{65}})
            append(value, half);
    }
    auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 1U);
    EXPECT_EQ(load<std::uint32_t>(stored_kernel(recording, 1).params.at(3).value, 8), 0U);
}

TEST_F(SuspectAdoption, WhatIsReadIsRefusedAsAPointer)
{
    for (RawCapture* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back(
            {kernel("add", {captured->capture.regions[1].address, theirs.address + low()}, 16), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 2)"), HasSubstr("lies in no declared region")));
}

TEST_F(SuspectAdoption, WhatIsWrittenIsRefusedAsAPointer)
{
    for (RawCapture* captured : {first.get(), second.get()})
        captured->graph.nodes.push_back(
            {kernel("add", {theirs.address + low(), captured->capture.regions[0].address}, 16), {1}});
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 2)"), HasSubstr("lies in no declared region")));
}

/// The word may be a pointer, so it is refused at once. No trial runs without the word.
TEST_F(SuspectAdoption, WhatIsFarInsideIsRefusedUntried)
{
    const std::uint64_t word = device->allocate_far(1 << 20).address.flat() + (1 << 16) + 4;
    add_tail(word, word);
    EXPECT_THAT(message_of(adopted(first->capture, &second->capture)), HasSubstr("lies in no declared region"));
}

TEST_F(SuspectAdoption, AMultipleOf16IsTriedToo)
{
    add_tail(theirs.address.flat() + 16, theirs.address.flat() + 16);
    EXPECT_EQ(take(adopted(first->capture, &second->capture)).entry.header.info.unused_words, 6U);
}

/// Bytes lie between the halves, and the lower half is a flag with stale bytes, as in ATen's reductions.
TEST_F(SuspectAdoption, HalvesWithBytesBetweenThemAreTried)
{
    const auto upper = static_cast<std::uint32_t>(theirs.address.flat() >> 32U);
    for (RawCapture* captured : {first.get(), second.get()}) {
        captured->capture.scratch.emplace_back("near", device->allocate_far(64));
        Bytes& value = std::get<backends::RawKernel>(captured->graph.nodes[1].work).params.emplace_back().value;
        for (const std::uint32_t half : {upper, std::uint32_t{0}, std::uint32_t{0}, std::uint32_t{0x24}})
            append(value, half);
    }
    const auto recording = adopted(first->capture, &second->capture);
    ASSERT_TRUE(recording) << recording.error().message;
    EXPECT_EQ(recording->entry.header.info.unused_words, 1U);
}

/// A small number with a stale upper half lies in a region of the call that begins at a multiple of 4 GiB.
TEST_F(SuspectAdoption, ASmallNumberInARegionThatMovesIsTried)
{
    first->capture.scratch.emplace_back("far", theirs);
    second->capture.scratch.emplace_back("far", device->allocate_far(k_count * 4));
    add_tail(number_and_upper_half(), number_and_upper_half());
    auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 6U);
    expect_untouched();
}

/// Two words in memory of the call that follow no region: an allocator's stale pointers, as in ATen's `cat`.
class StaleAdoption : public UnusedWordAdoption {
protected:
    StaleAdoption()
    {
        first->capture.scratch.emplace_back("stale", old);
        second->capture.scratch.emplace_back("stale", other);
    }
    MemoryRef old = make(k_count, 30), other = make(k_count, 30);
};

TEST_F(StaleAdoption, WhatFollowsNoRegionAndNoKernelUsesBecomesZero)
{
    add_tail(old.address.flat() + 8, other.address.flat() + 64);
    auto recording = take(adopted(first->capture, &second->capture));
    EXPECT_EQ(recording.entry.header.info.unused_words, 6U);
    Bytes expected(56);
    expected[0] = std::byte{5};
    EXPECT_EQ(stored_kernel(recording, 1).params.at(3).value, expected);
    expect_replay(recording, 40, 42);
    expect_untouched();
}

TEST_F(StaleAdoption, WhatAKernelReadsOrWritesIsRefused)
{
    for (const bool is_written : {false, true}) {
        for (auto [captured, address] :
             {std::pair{first.get(), old.address + 8}, std::pair{second.get(), other.address + 64}}) {
            const auto result = captured->capture.regions[1].address;
            captured->graph.nodes.push_back(
                {is_written ? kernel("add", {address, result}, 8) : kernel("add", {result, address}, 8), {1}});
        }
        // The kernel that reads gets scratch that nothing wrote before.
        expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                       is_written ? HasSubstr("is the address of live memory") : HasSubstr("reads this memory"));
        for (RawCapture* captured : {first.get(), second.get()}) captured->graph.nodes.pop_back();
    }
}

TEST_F(SuspectAdoption, WhereZerosLieNothingCanBeTold)
{
    std::fill_n(theirs.address.pointer<std::int32_t>(), k_count, 0);
    add_tail(number_and_upper_half(), number_and_upper_half());
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("zeros lie there, so that a test run cannot show a difference"));
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
    add_tail(frame.memory[1].address.flat() + 8, make(4, 1).address.flat());
    first->capture.free_blocks = {{frame.memory[1].address, frame.memory[1].size}};
    expect_refused(adopted(first->capture, &second->capture), ErrorCode::not_recordable,
                   HasSubstr("follows no region"));
}

} // namespace
} // namespace warmgraph::test::adoption_words_test
