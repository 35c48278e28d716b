// Addresses of the host's stack in uninitialised bytes. They are recognised because they move with the stack, or
// refused like any other difference.
#include "classify/host_addresses.hpp"
#include "flat_captures.hpp"
#include "number_decl.hpp"

namespace warmgraph::test::host_addresses_test {
namespace {

constexpr std::uint64_t k_shift = 0x11240;
constexpr std::uint64_t k_top = 0x7ffe'eda9'0000;

class HostAddresses : public FlatCaptures {
protected:
    /// Makes captures. `make` returns the bytes for Places and for the number of bytes by which the stack is lower.
    template <class Make>
    void capture_at_depths(Make make)
    {
        int captured = 0;
        capture_all([&](const Places& at) { return make(at, ++captured == 2 ? k_shift : 0); });
    }
    std::size_t erased() { return erase_host_addresses(captures, movement); }
    [[nodiscard]] static const Bytes& value(const CapturedGraph& capture)
    {
        return std::get<backends::RawKernel>(capture.graph.nodes[0].work).params[0].value;
    }
    void expect_everywhere(const Bytes& bytes)
    {
        EXPECT_EQ(value(captures.first), bytes);
        EXPECT_EQ(value(*captures.again), bytes);
        EXPECT_EQ(value(*captures.moved), bytes);
        for (const ScalarProbe& probe : captures.probes) EXPECT_EQ(value(probe.capture), bytes);
    }
    StackMovement movement{k_top - 0x80'0000, k_top, k_shift};
};

// Places on the stack. For some of them, the lower bytes cause a borrow when the distance is subtracted.
constexpr std::uint64_t k_places[]{0x7ffe'eda8'6f3a, 0x7ffe'eda8'6fb8, 0x7ffe'eda8'0008, 0x7ffe'eda8'fff8};

TEST_F(HostAddresses, AWholeOneBecomesZeroInEveryCapture)
{
    for (const std::uint64_t place : k_places) {
        capture_at_depths(
            [&](const Places&, std::uint64_t lower) { return (Packer{} << 7L << place - lower).bytes(); });
        EXPECT_EQ(erased(), 1U);
        expect_everywhere((Packer{} << 7L << 0L).bytes());
        EXPECT_THAT(slots(), IsEmpty());
    }
}

TEST_F(HostAddresses, OfOneWhoseLowerBytesWereOverwrittenTheRestBecomesZero)
{
    const auto over = [](std::uint64_t word, std::uint64_t real, std::uint64_t mask) { return (word & ~mask) | real; };
    for (const std::uint64_t place : k_places) {
        capture_at_depths([&](const Places&, std::uint64_t lower) {
            return (Packer{} << over(place - lower, 1, 0xff) << over(place - lower, 0xbeef, 0xffff)).bytes();
        });
        EXPECT_EQ(erased(), 2U);
        expect_everywhere((Packer{} << 1L << 0xbeefL).bytes());
    }
}

TEST_F(HostAddresses, OfOneUnderARealIntTheLowerBytesBecomeZero)
{
    const auto under = [](std::uint64_t word, std::uint32_t real) {
        return (word & 0xffff'ffff) | static_cast<std::uint64_t>(real) << 32;
    };
    for (const std::uint64_t place : k_places) {
        capture_at_depths([&](const Places&, std::uint64_t lower) {
            return (Packer{} << under(place - lower, 12345) << ((under(place - lower, 6) & ~0xffULL) | 1)).bytes();
        });
        EXPECT_EQ(erased(), 2U);
        expect_everywhere((Packer{} << under(0, 12345) << under(1, 6)).bytes());
    }
}

TEST_F(HostAddresses, ThePaddingThatCublasLeavesIsErasedBesideItsPointersAndScalars)
{
    interface.scalars.push_back(number("n", DType::i32, std::pair{0.0, 100.0}));
    captures.scalars = {5};
    capture_at_depths([](const Places& at, std::uint64_t lower) {
        const std::uint64_t left = 0x7ffe'eda8'6f3a - lower;
        return (Packer{} << ((left & ~0xffULL) | 1) << left << at.x + 64 << at.n << std::int32_t{9}).bytes();
    });
    expect_refused(HasSubstr("parameter 0 byte 0: 0x7ffeeda86f01 and then 0x7ffeeda75c01"));
    EXPECT_EQ(erased(), 2U);
    const auto found = slots();
    ASSERT_EQ(found.size(), 2U);
    EXPECT_EQ(found[0], slot(0, 16, 64));
    EXPECT_EQ(found[1].kind, cachefmt::SlotKind::scalar);
    const auto result = classified();
    const auto& stored = std::get<cachefmt::KernelNode>(result->graph.nodes[0]).params[0].value;
    EXPECT_EQ(load<std::uint64_t>(stored, 0), 1U);
    EXPECT_EQ(load<std::uint64_t>(stored, 8), 0U);
}

TEST_F(HostAddresses, AtAFourAlignedOffsetAndAtTheEndOfAParameterAreFound)
{
    capture_at_depths([](const Places&, std::uint64_t lower) {
        const std::uint64_t left = 0x7ffe'eda8'6f38 - lower;
        return (Packer{} << std::int32_t{3} << left << std::int32_t{4} << static_cast<std::uint32_t>(left)).bytes();
    });
    EXPECT_EQ(erased(), 2U);
    expect_everywhere((Packer{} << std::int32_t{3} << 0L << std::int32_t{4} << std::int32_t{0}).bytes());
}

TEST_F(HostAddresses, AreErasedThoughOtherCapturesHadOthersOfTheSameStack)
{
    int captured = 0;
    capture_all([&](const Places&) {
        constexpr std::uint64_t k_found[]{0x7ffe'eda8'6f38, 0x7ffe'eda8'6f38 - k_shift, 0x7ffe'eda8'0000};
        return (Packer{} << k_found[captured++]).bytes();
    });
    EXPECT_EQ(erased(), 1U);
    expect_everywhere((Packer{} << 0L).bytes());
}

/// Cases in which no word is erased, and the difference is refused.
class NoHostAddresses : public HostAddresses {
protected:
    void expect_left_and_refused(std::uint64_t first, std::uint64_t again, std::uint64_t moved)
    {
        int captured = 0;
        capture_all([&](const Places&) { return (Packer{} << std::array{first, again, moved}[captured++]).bytes(); });
        EXPECT_EQ(erased(), 0U);
        EXPECT_EQ(value(captures.first), (Packer{} << first).bytes());
        expect_refused(HasSubstr(fmt::format("parameter 0 byte 0: {:#x} and then {:#x}", first, again)));
    }
};

TEST_F(NoHostAddresses, AreWordsOutsideTheStackThatWentAsFar)
{
    expect_left_and_refused(k_top + 0x100, k_top + 0x100 - k_shift, k_top + 0x100);
    expect_left_and_refused(movement.bottom - 8, movement.bottom - 8 - k_shift, movement.bottom - 8);
    expect_left_and_refused(0x2'0000, 0x2'0000 - k_shift, 0x2'0000);
    expect_left_and_refused(0x7f00'0100'0000, 0x7f00'0100'0000 - k_shift, 0x7f00'0100'0000);
}

TEST_F(NoHostAddresses, AreWordsThatWentAnotherWay)
{
    constexpr std::uint64_t k_place = 0x7ffe'eda8'6f38;
    expect_left_and_refused(k_place, k_place + k_shift, k_place);
    expect_left_and_refused(k_place, k_place - k_shift - 8, k_place);
    expect_left_and_refused(k_place, k_place - 0x1'1400, k_place); // more than a borrow changes above one byte
    expect_left_and_refused(k_place, k_place - 0x3'0000, k_place); // more than a borrow changes above two bytes
    expect_left_and_refused(k_place, 5, k_place);
}

TEST_F(NoHostAddresses, AreWordsThatAnotherCaptureHasSomethingElseIn)
{
    constexpr std::uint64_t k_place = 0x7ffe'eda8'6f38;
    expect_left_and_refused(k_place, k_place - k_shift, 0x1234);
    expect_left_and_refused(k_place, k_place - k_shift, 0x7e00'0800'0000);
}

TEST_F(NoHostAddresses, AreWordsThatStay)
{
    const Bytes before = (Packer{} << 0x7ffe'eda8'6f38L << 0x7ffe'0000'0003L).bytes();
    capture_all([&](const Places&) { return before; });
    EXPECT_EQ(erased(), 0U);
    expect_everywhere(before);
    EXPECT_THAT(slots(), IsEmpty());
}

TEST_F(NoHostAddresses, AreKnownWithoutAMovement)
{
    movement = {};
    expect_left_and_refused(0x7ffe'eda8'6f38, 0x7ffe'eda8'6f38 - k_shift, 0x7ffe'eda8'6f38);
}

TEST_F(NoHostAddresses, IsARealChangeBesideOne)
{
    int captured = 0;
    capture_at_depths([&](const Places&, std::uint64_t lower) {
        return (Packer{} << 0x7ffe'eda8'6f38 - lower << 0x10L + ++captured).bytes();
    });
    EXPECT_EQ(erased(), 1U);
    expect_refused(AllOf(HasSubstr("its second run enqueued something else"),
                         HasSubstr("parameter 0 byte 8: 0x11 and then 0x12")));
}

TEST_F(NoHostAddresses, AreSoughtWhereCapturesDifferInStructure)
{
    const auto stack = [](const Places&, std::uint64_t lower) {
        return (Packer{} << 0x7ffe'eda8'6f38 - lower).bytes();
    };
    capture_at_depths(stack);
    captures.moved->graph.nodes.clear();
    EXPECT_EQ(erased(), 0U);
    capture_at_depths(stack);
    std::get<backends::RawKernel>(captures.moved->graph.nodes[0].work).params[0].value.push_back(std::byte{1});
    EXPECT_EQ(erased(), 0U);
    capture_at_depths(stack);
    captures.again.reset();
    EXPECT_EQ(erased(), 0U);
}

} // namespace
} // namespace warmgraph::test::host_addresses_test
