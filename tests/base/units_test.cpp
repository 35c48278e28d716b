#include <gtest/gtest.h>

#include "warmgraph/base/units.hpp"

namespace warmgraph::test::units_test {
namespace {

TEST(Units, SizesAreMultiplesOf1024)
{
    EXPECT_EQ(size_text(0), "0 B");
    EXPECT_EQ(size_text(1023), "1023 B");
    EXPECT_EQ(size_text(1024), "1.0 KiB");
    EXPECT_EQ(size_text(41 * 1024 + 300), "41 KiB");
    EXPECT_EQ(size_text(1024 * 1024 - 1), "1.0 MiB") << "never 1024 KiB";
    EXPECT_EQ(size_text(8ULL << 30), "8.0 GiB");
    EXPECT_EQ(size_text(UINT64_MAX), "16 EiB");
}

TEST(Units, CountsAndTimes)
{
    EXPECT_EQ(count_text(999), "999");
    EXPECT_EQ(count_text(9'412), "9 412");
    EXPECT_EQ(count_text(1'234'567), "1 234 567");
    EXPECT_EQ(time_text(3.94), "3.9 ms");
    EXPECT_EQ(time_text(1960), "1.96 s");
}

TEST(Units, NounsFollowTheirCount)
{
    EXPECT_EQ(plural(1, "variant"), "1 variant");
    EXPECT_EQ(plural(0, "variant"), "0 variants");
    EXPECT_EQ(plural(1, "entry"), "1 entry");
    EXPECT_EQ(plural(2, "entry"), "2 entries");
    EXPECT_EQ(plural(2, "key"), "2 keys");
    EXPECT_EQ(plural(1, "miss"), "1 miss");
    EXPECT_EQ(plural(3'000, "miss"), "3 000 misses");
}

} // namespace
} // namespace warmgraph::test::units_test
