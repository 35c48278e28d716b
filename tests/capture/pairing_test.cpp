// Uses captures of two processes. One process has written its capture to a file; its memory is freed when the other
// process adopts its own capture.
#include "adoption_fixture.hpp"
#include "warmgraph/capture/stored_capture.hpp"

namespace warmgraph::test::pairing_test {
namespace {

class Pairing : public AdoptionTest {
protected:
    [[nodiscard]] Result<StoredCapture> written(const AdoptedCapture& capture)
    {
        const Callable none;
        StreamPool streams{device};
        const std::shared_ptr<backends::Device> on = device;
        const CaptureTarget target{m_name, interface, device, run_once({m_name, interface, none, on, streams})};
        auto stored = capture_for_others(target, frame, header().key, capture);
        return stored ? decode_capture(encode(*stored)) : stored;
    }
    /// Writes the capture to a file, as another process does, and frees its memory.
    [[nodiscard]] StoredCapture written_and_gone(RawCapture& capture)
    {
        auto stored = written(capture.capture);
        EXPECT_TRUE(stored) << stored.error().message;
        for (const MemoryRef& region : capture.capture.regions) device->release(region);
        for (const auto& [name, memory] : capture.capture.scratch) device->release(memory);
        return stored.value_or(StoredCapture{});
    }
    Result<Recording> paired(const StoredCapture& stored)
    {
        const Callable none;
        StreamPool streams{device};
        const std::shared_ptr<backends::Device> on = device;
        const CaptureTarget target{m_name, interface, device, run_once({m_name, interface, none, on, streams})};
        return adopt(target, frame, header(), first->capture, nullptr, {.stored = &stored}, modules, phases);
    }
    /// Adds `word` as a parameter of the second kernel, which does not read it.
    static void add_word(RawCapture& captured, std::uint64_t word)
    {
        append(std::get<backends::RawKernel>(captured.graph.nodes[1].work).params.emplace_back().value, word);
    }

private:
    std::string m_name = "f";
};

TEST_F(Pairing, ProvesTheEntryAndNothingOfTheOtherProcessIsTouched)
{
    const StoredCapture stored = written_and_gone(*second);
    auto recording = take(paired(stored));
    expect_untouched();
    EXPECT_EQ(recording.entry.header.info.unproven, 0U);
    expect_replay(recording, 40, 42);
}

TEST_F(Pairing, OtherCodeUnderTheSameNameIsRefused)
{
    StoredCapture stored = written_and_gone(*second);
    stored.code[0].bytes[0] ^= std::byte{1};
    expect_refused(paired(stored), ErrorCode::not_recordable,
                   AllOf(HasSubstr("kernel add (node 0)"), HasSubstr("in the process that wrote the capture")));
}

TEST_F(Pairing, ModulesThatAreOneInOneProcessAloneAreRefused)
{
    StoredCapture stored = written_and_gone(*second);
    stored.code.push_back(stored.code[0]);
    stored.kernel_modules[1] = 1;
    expect_refused(paired(stored), ErrorCode::not_recordable, HasSubstr("shares its module"));
}

TEST_F(Pairing, OtherWorkOrOtherRegionsAreRefused)
{
    const StoredCapture stored = written_and_gone(*second);
    StoredCapture other = stored;
    std::get<backends::RawKernel>(other.graph.nodes[1].work).grid[0] = 2;
    expect_refused(paired(other), ErrorCode::not_recordable, AllOf(HasSubstr("(node 1)"), HasSubstr("grid")));
    other = stored;
    std::get<backends::RawKernel>(other.graph.nodes[0].work).kernel = "sum";
    expect_refused(paired(other), ErrorCode::not_recordable, HasSubstr("kernel add (node 0) and then kernel sum"));
    other = stored;
    other.graph.nodes.pop_back();
    other.kernel_modules.pop_back();
    expect_refused(paired(other), ErrorCode::not_recordable, HasSubstr("2 nodes and then 1"));
    other = stored;
    other.regions[1].first = "z";
    expect_refused(paired(other), ErrorCode::not_recordable, HasSubstr("no region 'y'"));
    other = stored;
    other.scratch.clear();
    expect_refused(paired(other), ErrorCode::not_recordable, HasSubstr("0 scratch regions, this one 1"));
    other = stored;
    other.graph.allocations.push_back({stored.scratch[0].second});
    expect_refused(paired(other), ErrorCode::not_recordable, HasSubstr("0 memory allocations and then 1"));
}

TEST_F(Pairing, ARegionThatStayedWhereItWasProvesNothing)
{
    const auto same = captured({frame.memory[0], make(k_count, 0)}, make(k_count + 4, 0));
    const auto stored = take(written(same->capture));
    expect_refused(paired(stored), ErrorCode::not_recordable,
                   AllOf(HasSubstr("region 'x'"), HasSubstr("had the same address")));
}

/// The word may be a base address from which indices are subtracted. Such an address would not move either.
TEST_F(Pairing, AWordBesideARegionThatStayedIsRefused)
{
    const auto same = captured({frame.memory[0], make(k_count, 0)}, make(k_count + 4, 0));
    const std::uint64_t before = frame.memory[0].address.flat() - 64;
    for (RawCapture* one : {first.get(), same.get()}) {
        one->graph.nodes.erase(one->graph.nodes.begin()); // removes the kernel that reads x
        one->graph.nodes[0].dependencies.clear();
        append(std::get<backends::RawKernel>(one->graph.nodes[0].work).params.emplace_back().value, before);
    }
    const auto stored = take(written(same->capture));
    expect_refused(paired(stored), ErrorCode::not_recordable,
                   AllOf(HasSubstr("near the region 'x'"), HasSubstr("both processes")));
}

/// Undeclared memory in the same segment of an allocator moves together with the regions there, at any distance from
/// them.
TEST_F(Pairing, APointerThatWentAsFarAsARegionAndLiesOutsideIsRefused)
{
    for (const std::uint64_t beyond : {std::uint64_t{4096}, std::uint64_t{1} << 33U}) {
        for (RawCapture* captured : {first.get(), second.get()})
            add_word(*captured, captured->capture.regions[0].address.flat() + beyond);
        const auto stored = take(written(second->capture));
        expect_refused(paired(stored), ErrorCode::not_recordable,
                       AllOf(HasSubstr("parameter 3 byte 0"), HasSubstr("moved by the same distance as 'x'")));
        for (RawCapture* captured : {first.get(), second.get()})
            std::get<backends::RawKernel>(captured->graph.nodes[1].work).params.pop_back();
    }
}

/// The file of the other process says which memory was at its addresses. This process's memory at these addresses does
/// not count.
TEST_F(Pairing, WhatAWordWasInTheOtherProcessIsAskedOfItsFile)
{
    static const int s_on_the_host = 1;
    add_word(*first, make(4, 1).address.flat());
    add_word(*second, reinterpret_cast<std::uintptr_t>(&s_on_the_host));
    StoredCapture stored = written_and_gone(*second);
    EXPECT_TRUE(paired(stored)) << "the address of host memory there: no pointer that a kernel follows";
    stored.host_words.clear();
    expect_refused(paired(stored), ErrorCode::not_recordable,
                   AllOf(HasSubstr("parameter 3 byte 0"), HasSubstr("follows no region")));
}

TEST_F(Pairing, AWordThatNobodyFollowsIsAnUnusedOne)
{
    add_word(*first, 0x1234'5678'9abc'def0);
    add_word(*second, 0x7777'5555'3333'1111);
    const auto recording = take(paired(written_and_gone(*second)));
    EXPECT_EQ(recording.entry.header.info.unused_words, 1U);
}

/// Addresses of device functions and handles of textures differ between processes, but not between two captures of one
/// process.
TEST_F(Pairing, DeviceFunctionsAndTexturesOfAProcessAreNoUnusedWords)
{
    add_word(*first, 0x1234'5678'9abc'0000);
    add_word(*second, 0x7777'5555'3333'0000);
    const StoredCapture stored = written_and_gone(*second);
    module->function = 0x1234'5678'9abc'0000;
    expect_refused(paired(stored), ErrorCode::not_recordable, HasSubstr("parameter 3 byte 0"));
    module->function = 0;
    device->textures->live = {{0x1234'5678'9abc'0000, 1}};
    expect_refused(paired(stored), ErrorCode::not_recordable, HasSubstr("parameter 3 byte 0"));
    device->textures->live.clear();
    EXPECT_TRUE(paired(stored));
}

/// The weights of a small model in one segment of an allocator: in both processes one begins where the other ends.
class SideBySide : public Pairing {
protected:
    static constexpr std::int32_t k_large = 256; // number of elements, 1024 bytes
    explicit SideBySide(std::int32_t bias = k_large) : count(bias)
    {
        interface = {};
        frame = {};
        // Both are allocated first, so that other members cannot change their places.
        const MemoryRef here = make(k_large + count, 0), there = make(k_large + count, 0);
        std::fill_n(here.address.pointer<std::int32_t>(), k_large, 3);
        std::fill_n(here.address.pointer<std::int32_t>() + k_large, count, 4);
        declare_at("weight", RegionKind::weights, weight_of(here));
        declare_at("bias", RegionKind::weights, bias_of(here));
        declare("y", RegionKind::output, count, 0);
        other = {weight_of(there), bias_of(there), make(count, 0)};
    }
    static MemoryRef weight_of(const MemoryRef& both) { return {both.address, k_large * 4ULL}; }
    static MemoryRef bias_of(const MemoryRef& both)
    {
        return {both.address + k_large * 4ULL, both.size - k_large * 4ULL};
    }
    /// Captures a kernel that gets the start of one region, and the address where the two regions touch.
    void capture(const std::string& name)
    {
        const auto make_one = [&](const std::vector<MemoryRef>& at) {
            auto result = std::make_unique<RawCapture>();
            backends::RawKernel work = kernel(name, {at[2].address, at[0].address}, count);
            append(work.params.emplace_back().value, at[1].address.flat());
            result->graph.nodes.push_back({work, {}});
            result->capture = {&result->graph, at, {}, {}};
            return result;
        };
        first = make_one(frame.memory);
        second = make_one(other);
    }
    void expect_start()
    {
        capture("add_two");
        const auto stored = take(written(second->capture));
        auto recording = take(paired(stored));
        const MemoryRef weight = make(k_large, 10), bias = make(count, 5), y = make(count, 0);
        ASSERT_TRUE(replay(recording, {weight, bias, y}));
        EXPECT_EQ(read(y), std::vector<std::int32_t>(static_cast<std::size_t>(count), 15));
    }
    /// Expects a refusal: the kernel would sum the memory between the two regions, which has canaries in the trial.
    void expect_end_refused()
    {
        capture("add_up");
        const auto stored = take(written(second->capture));
        const auto refused = paired(stored);
        ASSERT_TRUE(failed_with(refused, ErrorCode::verification_failed));
    }
    std::int32_t count; ///< elements of the bias
    std::vector<MemoryRef> other;
};

/// A bias of a usual size. The size is not a multiple of the distance between the trials' places.
class SideBySideWithAShortBias : public SideBySide {
protected:
    SideBySideWithAShortBias() : SideBySide(64) {}
};

TEST_F(SideBySide, TheWordBetweenThemIsTheSecondOnesStartWhereTheResultsSaySo) { expect_start(); }

TEST_F(SideBySideWithAShortBias, TheWordBetweenThemIsTheSecondOnesStartWhereTheResultsSaySo) { expect_start(); }

TEST_F(SideBySide, TheEndOfTheFirstIsFoundOutAndRefused) { expect_end_refused(); }

TEST_F(SideBySideWithAShortBias, TheEndOfTheFirstIsFoundOutAndRefused) { expect_end_refused(); }

TEST_F(SideBySide, WhatCannotBePutApartIsRefused)
{
    capture("add_two");
    const auto stored = take(written(second->capture));
    device->free = 16'000; // bytes of free memory: too few for copies of read-only memory
    const auto refused = paired(stored);
    ASSERT_TRUE(failed_with(refused, ErrorCode::not_recordable));
    EXPECT_THAT(refused.error().message,
                AllOf(HasSubstr("'weight'"), HasSubstr("'bias'"), HasSubstr("place the two apart")));
}

TEST_F(SideBySide, TwoCapturesOfOneProcessThatMovedTogetherAreStillRefused)
{
    capture("add_two");
    EXPECT_THAT(message_of(adopted(first->capture, &second->capture)),
                HasSubstr("place the two apart from each other"));
}

} // namespace
} // namespace warmgraph::test::pairing_test
