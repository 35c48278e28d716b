// Pointers among the words of parameters that are passed by value. They are found because they move between the
// captures, or else refused.
#include "flat_captures.hpp"
#include "flat_device.hpp"
#include "number_decl.hpp"

namespace warmgraph::test::classify_words_test {
namespace {

class Words : public FlatCaptures {};

TEST_F(Words, APointerInsideAByValueStructFollowsItsRegion)
{
    capture_all([](const Places& at) { return (Packer{} << std::int32_t{64} << 0.5F << at.x + 128 << 7L).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(0, 8, 128)));
    EXPECT_EQ(m_unproven, 0U);
}

TEST_F(Words, EveryPointerOfAPackedBufferFollowsItsOwnRegion)
{
    capture_all([](const Places& at) {
        return (Packer{} << at.y << std::int32_t{3} << std::int32_t{4} << at.x << at.pool + 256).bytes();
    });
    for (CapturedGraph* capture : {&captures.first, &*captures.again, &*captures.moved})
        std::get<backends::RawKernel>(capture->graph.nodes[0].work).packed = true;
    EXPECT_THAT(slots(), ElementsAre(slot(1, 0, 0), slot(0, 16, 0), slot(2, 24, 256)));
    EXPECT_TRUE(std::get<cachefmt::KernelNode>(classified()->graph.nodes[0]).packed);
}

TEST_F(Words, TheAddressInsideAnOpaqueTensorMapFollows)
{
    capture_all([](const Places& at) {
        return Packer{}.skip(64).operator<<(at.y + 64).operator<<(0x8000'4000'2000'1000ULL).skip(112).bytes();
    });
    EXPECT_THAT(slots(), ElementsAre(slot(1, 64, 64)));
}

TEST_F(Words, APointerAtAFourAlignedOffsetIsFound)
{
    capture_all([](const Places& at) { return (Packer{} << std::int32_t{1} << at.x << std::int32_t{2}).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(0, 4, 0)));
}

TEST_F(Words, APointerAtAnyOffsetIsFound)
{
    capture_all([](const Places& at) { return (Packer{} << std::int8_t{1} << at.x + 8 << std::int64_t{2}).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(0, 1, 8)));
}

TEST_F(Words, OnePastTheEndBelongsToItsRegion)
{
    capture_all([](const Places& at) { return (Packer{} << at.x + k_size).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, k_size)));
}

TEST_F(Words, OfAdjacentRegionsTheOneThatMovedAsFarIsFollowed)
{
    m_first.y = m_first.x + k_size;
    capture_all([](const Places& at) { return (Packer{} << at.x + k_size << at.y).bytes(); });
    ASSERT_EQ(captures.first.regions[0].address + k_size, captures.first.regions[1].address);
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, k_size), slot(1, 8, 0)));
}

TEST_F(Words, APointerBeforeItsRegionOrBeyondItIsProvenByItsMovement)
{
    capture_all([](const Places& at) { return (Packer{} << at.x - 0x2800 << at.y + 0x3800).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, -0x2800), slot(1, 8, 0x3800)));
    EXPECT_EQ(m_unproven, 0U);
}

TEST_F(Words, APointerOutsideIsNoFartherAwayThanAllRegionsTogether)
{
    constexpr std::uint64_t k_all = 3 * k_size; // size of x, y and the pool together
    capture_all([](const Places& at) { return (Packer{} << at.x - k_all << at.y + k_size + k_all).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, -static_cast<std::int64_t>(k_all)), slot(1, 8, k_size + k_all)));
    for (const std::uint64_t distance : {-k_all - 8, k_size + k_all + 8}) {
        capture_all([=](const Places& at) { return (Packer{} << at.x + distance).bytes(); });
        expect_refused(HasSubstr("follows no region"));
    }
}

/// A struct with a pointer's halves and a count between: both halves change with the region, but no word of 8 bytes
/// does.
TEST_F(Words, HalvesOfAnAddressWithSomethingBetweenAreRefused)
{
    m_moved.x = m_first.x + (1ULL << 32U) + k_size;
    capture_all([](const Places& at) {
        return (Packer{} << static_cast<std::uint32_t>(at.x) << 9U << static_cast<std::uint32_t>(at.x >> 32U)).bytes();
    });
    expect_refused(HasSubstr("A value computed from an address cannot be recorded"));
}

TEST_F(Words, APointerOutsideThatTwoRegionsExplainIsRefusedNamingBoth)
{
    m_first.y = m_first.x + k_size;
    m_moved.y = m_moved.x + k_size;
    capture_all([](const Places& at) { return (Packer{} << at.x - 0x800).bytes(); });
    expect_refused(AllOf(HasSubstr("'x'"), HasSubstr("'y'")));
}

TEST_F(Words, ADeclaredRegionInsideAPoolIsCutOutOfThePool)
{
    m_first.y = m_first.pool + 0x800;
    m_moved.y = m_moved.pool + 0x800;
    interface.regions[1].sizes = {0x100};
    capture_all([](const Places& at) { return (Packer{} << at.y + 16 << at.pool << at.y + 0x200).bytes(); });
    captures.first.regions[1].size = captures.again->regions[1].size = captures.moved->regions[1].size = 0x100;
    EXPECT_THAT(slots(), ElementsAre(slot(1, 0, 16), slot(2, 8, 0), slot(2, 16, 0xA00)));
}

TEST_F(Words, AWordThatMovesByAnythingElseIsRefusedWithNodeKernelOffsetAndBothValues)
{
    capture_all([](const Places& at) { return (Packer{} << 1L << 2 * at.x).bytes(); });
    expect_refused(AllOf(HasSubstr("kernel k (node 0)"), HasSubstr("parameter 0 byte 8"), HasSubstr("0xfe0000000000"),
                         HasSubstr("0xfc0010000000"), HasSubstr("no declared region")));
    capture_all([](const Places& at) { return (Packer{} << at.x + (at.x > 0x7f00'0000'0000 - 1 ? 0 : 64)).bytes(); });
    expect_refused(HasSubstr("0 bytes into 'x'"));
}

TEST_F(Words, AWordThatIsAnotherOneTheSecondTimeIsRefusedWithItsPlaceAndBothValues)
{
    int calls = 0;
    capture_all([&calls](const Places&) { return (Packer{} << 9L << 0x10L + ++calls).bytes(); });
    expect_refused(AllOf(HasSubstr("its second run enqueued something else"), HasSubstr("kernel k (node 0)"),
                         HasSubstr("parameter 0 byte 8: 0x11 and then 0x12")));
}

TEST_F(Words, HalfOfAnAddressIsRefused)
{
    capture_all([](const Places& at) { return (Packer{} << static_cast<std::uint32_t>(at.x >> 8)).bytes(); });
    expect_refused(HasSubstr("A value computed from an address cannot be recorded"));
}

/// A parameter with half of a stale pointer, and a small number. The upper half of any host address looks like a device
/// address's upper half.
TEST_F(Words, AHalfOfAWholeAddressIsNoHalfOfAnother)
{
    const std::uint64_t top = m_first.x >> 32U << 32U;
    captures.allocation_at = [=](std::uint64_t flat) {
        return flat - (top | 0x7000'0000U) < 64 ? std::optional{at(top | 0x7000'0000U)} : std::nullopt;
    };
    const std::uint64_t stale = top | 0x1234'5678U;
    const auto capture = [&] {
        capture_all([=](const Places&) { return (Packer{} << stale << 0x7000'0002L << 5L).bytes(); });
    };
    capture();
    expect_refused(HasSubstr("lies in no declared region"));
    captures.is_host_only = [=](std::uint64_t word) { return word == stale; };
    capture();
    EXPECT_TRUE(slots().empty());
}

/// y begins where x ends, in both captures.
class Neighbours : public FlatCaptures {
protected:
    Neighbours()
    {
        m_first.y = m_first.x + k_size;
        m_moved.y = m_moved.x + k_size;
    }
};

/// The kernel gets both pointers. The pointer to y may mean the end of x or the start of y.
TEST_F(Neighbours, WhereTheKernelTakesTheFirstAsWellItIsRefused)
{
    capture_all([](const Places& at) { return (Packer{} << at.x << at.y).bytes(); });
    expect_refused(AllOf(HasSubstr("'x'"), HasSubstr("'y'"), HasSubstr("place the two apart from each other")));
}

TEST_F(Neighbours, WhereTheKernelTakesNothingOfTheFirstItIsNotItsEnd)
{
    capture_all([](const Places& at) { return (Packer{} << at.y + 16 << at.y).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(1, 0, 16), slot(1, 8, 0)));
}

TEST_F(Neighbours, WhereTheKernelTakesBothTheyCannotBeToldApart)
{
    capture_all([](const Places& at) { return (Packer{} << at.y << at.x << at.y + 16).bytes(); });
    expect_refused(
        AllOf(HasSubstr("'x'"), HasSubstr("'y'"), HasSubstr("parameter 0 byte 0"), HasSubstr("0x7f0000001000")));
    captures.proof = Proof::allow_unproven;
    EXPECT_THAT(slots(), ElementsAre(slot(1, 0, 0), slot(0, 8, 0), slot(1, 16, 16)));
    EXPECT_EQ(m_unproven, 1U);
}

TEST_F(Words, AnIntegerThatLooksLikeAnAddressOfADeclaredRegionIsRefused)
{
    capture_all([this](const Places&) { return (Packer{} << m_first.x + 64).bytes(); });
    expect_refused(
        AllOf(HasSubstr("stays the same when that region moves"), HasSubstr("'x'"), HasSubstr("0x7f0000000040")));
    captures.proof = Proof::allow_unproven; // not needed here: the movement proves that the word follows no region
    expect_refused(HasSubstr("stays the same when that region moves"));
}

TEST_F(Words, AnIntegerThatLooksLikeAnAddressOfALiveAllocationIsRefusedAndAskedAboutOnce)
{
    int asked = 0;
    captures.allocation_at = [&](std::uint64_t flat) -> std::optional<MemoryRef> {
        ++asked;
        return flat == 0x7a00'0000'0010 ? std::optional{at(0x7a00'0000'0000)} : std::nullopt;
    };
    capture_all([](const Places&) {
        return (Packer{} << 5L << 0x7b00'0000'0000L << 0x7b00'0000'0000L << 0x7a00'0000'0000'0000L).bytes();
    });
    EXPECT_THAT(slots(), IsEmpty());
    EXPECT_EQ(asked, 1) << "small and huge words cannot be pointers, and one answer does for equal words";
    capture_all([](const Places&) { return (Packer{} << 0x7a00'0000'0010L).bytes(); });
    expect_refused(AllOf(HasSubstr("kernel k (node 0), parameter 0 byte 0: 0x7a0000000010 lies in no declared region"),
                         HasSubstr("inside an allocation of 4096 bytes"), HasSubstr("Recorder::alloc")));
    capture_only_once();
    captures.proof = Proof::allow_unproven;
    expect_refused(HasSubstr("lies in no declared region"));
}

TEST_F(Words, ARegionThatDidNotMoveProvesNothing)
{
    m_moved.y = m_first.y;
    capture_all([](const Places& at) { return (Packer{} << at.x << at.y + 32).bytes(); });
    expect_refused(AllOf(HasSubstr("'y'"), HasSubstr("same address in both captures")));
    captures.proof = Proof::allow_unproven;
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, 0), slot(1, 8, 32)));
    EXPECT_EQ(m_unproven, 1U);
}

TEST_F(Words, OneCaptureIsTakenByRangeOnlyWhenThatIsAllowed)
{
    capture_all([](const Places& at) {
        return (Packer{} << at.x + 16 << std::int32_t{1} << at.pool << std::int32_t{2} << 77L).bytes();
    });
    capture_only_once();
    expect_refused(AllOf(HasSubstr("second capture"), HasSubstr("'x'"), HasSubstr("parameter 0 byte 0")));
    captures.proof = Proof::allow_unproven;
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, 16), slot(2, 12, 0)));
    EXPECT_EQ(m_unproven, 2U);
}

TEST_F(Words, OneCaptureOfPlainNumbersNeedsNoProof)
{
    capture_all([](const Places&) { return (Packer{} << 1L << 2.5).bytes(); });
    capture_only_once();
    EXPECT_THAT(slots(), IsEmpty());
    EXPECT_EQ(m_unproven, 0U);
}

class WordsAndScalars : public FlatCaptures {
protected:
    WordsAndScalars()
    {
        interface.scalars.push_back(number("n", DType::i32, std::pair{0.0, 100.0}));
        captures.scalars = {5};
    }
};

TEST_F(WordsAndScalars, StandSideBySide)
{
    capture_all([](const Places& at) { return (Packer{} << at.x << at.n << std::int32_t{9} << at.y).bytes(); });
    const auto found = slots();
    ASSERT_EQ(found.size(), 3U);
    EXPECT_EQ(found[0], slot(0, 0, 0));
    EXPECT_EQ(found[1].kind, cachefmt::SlotKind::scalar);
    EXPECT_EQ(found[1].offset, 8U);
    EXPECT_EQ(found[2], slot(1, 16, 0));
}

TEST_F(WordsAndScalars, AnAddressThatDependsOnAScalarIsRefused)
{
    capture_all([](const Places& at) { return (Packer{} << at.x + static_cast<std::uint64_t>(at.n)).bytes(); });
    expect_refused(HasSubstr("an address that depends on a scalar"));
    capture_all([](const Places& at) { return (Packer{} << at.x + 4 * static_cast<std::uint64_t>(at.n)).bytes(); });
    expect_refused(HasSubstr("scalar 'n'"));
}

TEST_F(WordsAndScalars, AWordThatOverlapsAScalarIsTheScalars)
{
    // The scalar and the number beside it look like an address in 'x': 0x00007f00'00000005.
    capture_all([](const Places& at) { return (Packer{} << at.n << std::int32_t{0x7f00}).bytes(); });
    const auto found = slots();
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].kind, cachefmt::SlotKind::scalar);
}

class Handles : public FlatCaptures {
protected:
    Handles()
    {
        captures.is_handle = [](std::uint64_t word) { return word == 5 || word == 6; };
    }
};

TEST_F(Handles, AWordThatEqualsOneIsRefusedWithItsPlaceAndTheCure)
{
    capture_all([](const Places& at) { return (Packer{} << at.x << std::uint64_t{6}).bytes(); });
    const auto why =
        AllOf(HasSubstr("kernel k (node 0)"), HasSubstr("parameter 0 byte 8"), HasSubstr("0x6"), HasSubstr("texture"),
              HasSubstr("declare it as a u64 scalar and pass each process's own handle"));
    expect_refused(why);
    capture_only_once();
    captures.proof = Proof::allow_unproven;
    expect_refused(why);
}

TEST_F(Handles, AreWholeWordsAndNeverZero)
{
    capture_all([](const Places&) {
        return (Packer{} << std::int32_t{1} << std::int32_t{5} << std::uint64_t{0} << std::int32_t{6}).bytes();
    });
    EXPECT_THAT(slots(), IsEmpty());
}

TEST_F(Handles, AWordThatMayBeAFunctionOfTheKernelsModuleIsRefused)
{
    constexpr std::uint64_t k_function = 0x7f8f'3b7a'0a00;
    FlatModule module{FlatModule::Origin::compiled, 0};
    module.function = k_function;
    const auto capture = [&](std::uint64_t word) {
        capture_all([&](const Places& at) { return (Packer{} << at.x << word).bytes(); });
        for (CapturedGraph* one : {&captures.first, &*captures.again, &*captures.moved})
            std::get<backends::RawKernel>(one->graph.nodes[0].work).module = &module;
    };
    capture(k_function + 16);
    EXPECT_THAT(slots(), ElementsAre(slot(0, 0, 0)));
    capture(k_function);
    expect_refused(AllOf(HasSubstr("kernel k (node 0)"), HasSubstr("parameter 0 byte 8"), HasSubstr("0x7f8f3b7a0a00"),
                         HasSubstr("address of a device function"), HasSubstr("choose the function by a number")));
    captures.is_handle = nullptr;
    expect_refused(HasSubstr("device function"));
}

TEST_F(Handles, AWordThatFollowsAScalarIsTheScalarsAndNoOtherOne)
{
    interface.scalars.push_back(number("texture", DType::u64));
    captures.scalars = {5};
    capture_all([](const Places& at) { return (Packer{} << at.y << static_cast<std::uint64_t>(at.n)).bytes(); });
    EXPECT_THAT(slots(), ElementsAre(slot(1, 0, 0), cachefmt::Slot{cachefmt::SlotKind::scalar, 0, 8, 8, 0}));
    capture_all([](const Places& at) {
        return (Packer{} << at.y << static_cast<std::uint64_t>(at.n) << std::uint64_t{5}).bytes();
    });
    expect_refused(HasSubstr("parameter 0 byte 16"));
}

/// Bytes that differ between the captures and do not move with a region.
class Unexplained : public FlatCaptures {
protected:
    Unexplained() { captures.unused = UnusedWords::tried; }
    /// Captures a parameter of 16 bytes: the word `first` (in the second capture `moved`), and the word 7.
    void capture(std::uint64_t first, std::uint64_t moved)
    {
        capture_all([&](const Places& at) { return (Packer{} << (at.x == m_first.x ? first : moved) << 7L).bytes(); });
    }
    [[nodiscard]] Bytes stored() const
    {
        const auto result = classified();
        return result ? std::get<cachefmt::KernelNode>(result->graph.nodes[0]).params[0].value : Bytes{};
    }
};

TEST_F(Unexplained, BecomeZeroAndAreOneWord)
{
    capture(0x1234'5678'9abc'def0, 0x1111'2222'3333'4444);
    EXPECT_EQ(stored(), (Packer{} << 0L << 7L).bytes());
    const auto result = classified();
    ASSERT_TRUE(result);
    ASSERT_EQ(result->unused.size(), 1U);
    EXPECT_EQ(result->unused[0].offset, 0U);
    EXPECT_EQ(result->unused[0].was, 0x1234'5678'9abc'def0U);
    EXPECT_EQ(result->unused[0].is, 0x1111'2222'3333'4444U);
    EXPECT_THAT(result->unused[0].place, AllOf(HasSubstr("kernel k (node 0)"), HasSubstr("parameter 0 byte 0")));
    captures.unused = UnusedWords::refused;
    expect_refused(HasSubstr("follows no region"));
}

/// The program's number 17 was larger by the distance in the second capture. A kernel may get it as an integer, a
/// product, or a floating-point number.
TEST_F(Unexplained, AreRefusedWhereTheyMovedAsANumberOfTheProgram)
{
    constexpr std::int64_t k_distance = 1'234'567, k_first = 17, k_moved = k_first + k_distance;
    const auto expect_number = [this](auto first, auto moved, bool is_number = true) {
        capture_all([&](const Places& at) {
            return (Packer{} << std::int32_t{7} << (at.x == m_first.x ? first : moved) << std::int32_t{8}).bytes();
        });
        if (is_number)
            expect_refused(AllOf(HasSubstr("parameter 0 byte "), HasSubstr("made from a number of the program")));
        else
            EXPECT_TRUE(classified());
    };
    captures.number_distance = k_distance;
    expect_number(k_first, k_moved);
    expect_number(static_cast<std::int32_t>(k_first), static_cast<std::int32_t>(k_moved));
    expect_number(-k_first, -k_moved);
    expect_number(24 * k_first + 5, 24 * k_moved + 5);
    expect_number(static_cast<float>(k_first), static_cast<float>(k_moved));
    expect_number(static_cast<double>(k_first), static_cast<double>(k_moved));
    expect_number(0.5 * static_cast<double>(k_first), 0.5 * static_cast<double>(k_first) + 3.0 * k_distance);
    expect_number(k_first, k_moved + 1, false);
    expect_number(std::int64_t{0x1234'5678'9abc'def0}, std::int64_t{0x1111'2222'3333'4444}, false);
    captures.number_distance = 0;
    expect_number(k_first, k_moved, false);
}

TEST_F(Unexplained, ANumberOfTheProgramIsFoundInAParameterOfFourBytes)
{
    captures.number_distance = 1'234'567;
    capture_all([this](const Places& at) {
        return (Packer{} << (at.x == m_first.x ? std::int32_t{3} : std::int32_t{1'234'570})).bytes();
    });
    expect_refused(HasSubstr("made from a number of the program"));
}

TEST_F(Unexplained, LeaveWhatIsTheSameBesideThem)
{
    capture(0x1234'5678'9abc'de01, 0x1111'2222'3333'4401); // the lowest byte is a bool, the others are padding
    EXPECT_EQ(stored(), (Packer{} << 1L << 7L).bytes());
}

TEST_F(Unexplained, AreRefusedWhereTheyLieInLiveMemory)
{
    captures.allocation_at = [](std::uint64_t flat) {
        return flat >> 12U == 0x6f00'0000'0ULL ? std::optional{at(0x6f00'0000'0000)} : std::nullopt;
    };
    capture(0x6f00'0000'0010, 0x5e00'0000'4444); // in use in the first capture; in the second it may be freed
    expect_refused(AllOf(HasSubstr("follows no region"), HasSubstr("0x6f0000000010")));
    capture(0x1111'2222'3333'4444, 0x6f00'0000'0010); // a trial runs the first capture without this word
    EXPECT_EQ(stored(), (Packer{} << 0L << 7L).bytes());
}

TEST_F(Unexplained, HalvesOfTwoWordsAreAnAddressOnlyIfTheyAreOneInBoth)
{
    captures.allocation_at = [](std::uint64_t flat) {
        return flat >> 32U == 0x6f00 ? std::optional{at(0x6f00'0000'0000)} : std::nullopt;
    };
    const auto capture_pair = [this](std::uint64_t first, std::uint64_t moved) {
        capture_all([&](const Places& at) {
            const bool is_first = at.x == m_first.x;
            return (Packer{} << std::int32_t{7} << (is_first ? first : moved) << std::int32_t{8}).bytes();
        });
    };
    capture_pair(0x6f00'1234'5678, 0x1111'2222'3333'4444);
    EXPECT_EQ(stored(), (Packer{} << std::int32_t{7} << 0L << std::int32_t{8}).bytes());
    capture_pair(0x6f00'1234'5678, 0x6f00'0000'4444);
    expect_refused(HasSubstr("follows no region"));
}

TEST_F(Unexplained, AreRefusedWhereTheyLieInARegion)
{
    capture(m_first.x + 8, 0x5e00'0000'4444);
    expect_refused(AllOf(HasSubstr("follows no region"), HasSubstr("8 bytes into 'x'")));
}

TEST_F(Unexplained, ThatAreCertainlyNoAddressInTheSecondCaptureAreNone)
{
    captures.is_host_only = [](std::uint64_t word) { return word == 0x7ffd'0000'1230; };
    for (const std::uint64_t none : {std::uint64_t{0x1111'2222'3333'4444}, std::uint64_t{0x7ffd'0000'1230}}) {
        capture(m_first.x + 8, none);
        const auto result = take(classified());
        EXPECT_EQ(result.unused.size(), 1U) << none;
    }
}

TEST_F(Unexplained, AreRefusedWhereTheyAreTheDistanceOfTwoRegions)
{
    capture(m_first.y - m_first.x, m_moved.y - m_moved.x);
    expect_refused(HasSubstr("follows no region"));
    capture(m_first.x - m_first.pool + 16, m_moved.x - m_moved.pool + 16);
    expect_refused(HasSubstr("follows no region"));
}

TEST_F(Unexplained, AreNoDistanceIfTheyOnlyChangedByOne)
{
    // 1.0F above a stale half, as cuDNN's nchwToNhwcKernel has it
    constexpr std::uint64_t k_one = 0x3f80'0000ULL << 32U;
    capture(k_one + (m_first.y - m_first.x), k_one + (m_moved.y - m_moved.x));
    EXPECT_EQ(take(classified()).unused.size(), 1U);
}

TEST_F(Unexplained, AreRefusedWithTheCheckThatRefuses)
{
    capture(m_first.y - m_first.x, m_moved.y - m_moved.x);
    expect_refused(HasSubstr("follows no region, and the word at byte 0 may be the distance between two regions. It"));
    capture(m_first.x + 8, 0x5e00'0000'4444);
    expect_refused(HasSubstr("follows no region, and the word at byte 0 is the address of live memory. It"));
    capture_all([&](const Places& at) {
        return (Packer{} << static_cast<std::uint32_t>(at.x >> 32U) << std::int32_t{9}
                         << static_cast<std::uint32_t>(at.x + 16))
            .bytes();
    });
    expect_refused(HasSubstr("follows no region, but with the half at byte 0 it makes an address that follows a"));
}

TEST_F(Unexplained, AreRefusedWhereTheyAreAPointerInTwoHalves)
{
    for (const bool is_high_first : {false, true}) {
        capture_all([&](const Places& at) {
            const auto low = static_cast<std::uint32_t>(at.x + 16), high = static_cast<std::uint32_t>(at.x >> 32U);
            return (Packer{} << (is_high_first ? high : low) << std::int32_t{9} << (is_high_first ? low : high))
                .bytes();
        });
        expect_refused(HasSubstr("follows no region"));
    }
}

TEST_F(Unexplained, AreOneWordForEachEightBytes)
{
    capture_all([&](const Places& at) {
        Packer packer;
        for (std::uint64_t i = 0; i < 25; ++i) packer << (i < 2 ? i : (at.x == m_first.x ? 0x1111ULL : 0x2222ULL) << i);
        return packer.bytes();
    });
    const auto result = take(classified());
    EXPECT_EQ(result.unused.size(), 23U);
}

} // namespace
} // namespace warmgraph::test::classify_words_test
