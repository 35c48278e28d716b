// The contents of a capture's scratch: if words look like addresses, the contents are kept, for few and for many words.
#include "flat_fixture.hpp"
#include "verify/scratch_contents.hpp"

namespace warmgraph::test::scratch_contents_test {
namespace {

using Fill = ScratchContents::Fill;

/// Puts words of 8 bytes into scratch. The parameter is the offset of the words.
class ScratchContentsTest : public FlatFunction, public testing::WithParamInterface<std::uint64_t> {
protected:
    /// Writes `words` words. Every word whose number is a multiple of `every` points to unused memory near the scratch;
    /// the others have all bits set.
    void lay(std::uint64_t words, std::uint64_t every)
    {
        auto allocated = device->allocate(words * sizeof(std::uint64_t));
        ASSERT_TRUE(allocated);
        memory = *allocated;
        memory.size = words * sizeof(std::uint64_t);
        const std::uint64_t nowhere = address_of_nothing();
        const std::span contents{memory.address.pointer<std::uint64_t>(), words};
        for (std::uint64_t i = 0; i < words; ++i) contents[i] = i % every == 0 ? nowhere + i : ~std::uint64_t{0};
        before.assign(contents.begin(), contents.end());
    }
    /// An unused address at least half a GiB away from the scratch. It has the same upper half as the scratch, so it
    /// looks like an address. Its lower half is not near 0 or 4 GiB, so that small sums keep the upper half. The lower
    /// half also differs from all upper halves, so that two words side by side do not contain an address across their
    /// border.
    [[nodiscard]] std::uint64_t address_of_nothing() const
    {
        constexpr std::uint64_t k_upper = ~0ULL << 32U, k_low = 0x6000'0000, k_high = 0xA000'0000;
        const std::uint64_t flat = memory.address.flat();
        return (flat & k_upper) | ((flat & ~k_upper) < 1ULL << 31U ? k_high : k_low);
    }
    [[nodiscard]] std::vector<std::uint64_t> now() const
    {
        const auto* const words = memory.address.pointer<std::uint64_t>();
        return {words, words + before.size()};
    }
    [[nodiscard]] std::vector<std::uint64_t> expected(std::uint64_t from, std::uint64_t to, std::uint64_t every,
                                                      std::uint64_t word) const
    {
        auto words = before;
        for (std::uint64_t i = from; i < to; ++i)
            if (i % every != 0) words[i] = word;
        return words;
    }
    MemoryRef memory;
    std::vector<std::uint64_t> before;
};

constexpr std::uint64_t k_word = sizeof(std::uint64_t), k_everywhere = 1, k_few = 4096;

TEST_P(ScratchContentsTest, AddressesStayAndAllElseIsFilled)
{
    constexpr std::uint64_t k_words = (17ULL << 20) / k_word, k_from = 32, k_to = k_words - 32; // more than one piece
    ASSERT_NO_FATAL_FAILURE(lay(k_words, GetParam()));
    {
        ScratchContents scratch{*device};
        ASSERT_TRUE(scratch.save({{"pool", memory}}, {}));
        const ScratchContents::Range range{0, k_from * k_word, k_to * k_word};
        ASSERT_TRUE(scratch.fill(range, Fill::zeros, {}));
        EXPECT_TRUE(now() == expected(k_from, k_to, GetParam(), 0));
        ASSERT_TRUE(scratch.fill(range, Fill::whole_numbers, {}));
        EXPECT_TRUE(now() == expected(k_from, k_to, GetParam(), 1));
        const ScratchContents::Range kept[] = {{0, 64 * k_word, 128 * k_word}};
        ASSERT_TRUE(scratch.fill(range, Fill::zeros, kept));
        auto wanted = expected(k_from, k_to, GetParam(), 0);
        std::copy_n(before.begin() + 64, 64, wanted.begin() + 64);
        EXPECT_TRUE(now() == wanted);
    }
    EXPECT_TRUE(now() == before);
}

TEST_P(ScratchContentsTest, AddressesOfWhereNothingIsBecomeZeroWhileARunIsTried)
{
    ASSERT_NO_FATAL_FAILURE(lay(8192, GetParam()));
    ScratchContents scratch{*device};
    ASSERT_TRUE(scratch.save({{"pool", memory}}, {}));
    std::vector<std::uint64_t> tried;
    ASSERT_TRUE(scratch.check_addresses([&]() -> Result<bool> {
        tried = now();
        return true;
    }));
    ASSERT_EQ(tried.size(), before.size());
    for (std::uint64_t i = 0; i < tried.size(); ++i) ASSERT_EQ(tried[i] == before[i], i % GetParam() != 0) << i;
}

using ScratchContentsOfOneTest = ScratchContentsTest;

TEST_F(ScratchContentsOfOneTest, SmallNumbersAreNoAddressesWhereMemoryLiesLow)
{
    constexpr std::uint64_t k_low = 0x3'0200'0000; // an address as cuMemAddressReserve returns it
    constexpr std::size_t k_at = 3;
    ASSERT_NO_FATAL_FAILURE(lay(64, 1));
    auto* const words = memory.address.pointer<std::uint64_t>();
    std::ranges::fill(std::span{words, 64}, 0);
    words[k_at] = k_low + 16;
    const MemoryRef known[] = {{Address::from_flat(k_low), 4096}};
    ScratchContents scratch{*device};
    ASSERT_TRUE(scratch.save({{"pool", memory}}, known));
    ASSERT_TRUE(scratch.fill({0, 0, 64 * k_word}, Fill::whole_numbers, {}));
    std::vector<std::uint64_t> expected(64, 1);
    expected[k_at] = k_low + 16;
    EXPECT_EQ(now(), expected);
}

INSTANTIATE_TEST_SUITE_P(Addresses, ScratchContentsTest, testing::Values(k_everywhere, 2, 3, k_few));

} // namespace
} // namespace warmgraph::test::scratch_contents_test
