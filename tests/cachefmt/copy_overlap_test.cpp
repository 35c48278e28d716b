// Copies within one region. If validate() says that source and destination overlap, a count of the bytes must say so,
// too.
#include <algorithm>
#include <set>

#include "expect_error.hpp"
#include "random_graph.hpp"
#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test::copy_overlap_test {
namespace {

using warmgraph::test::RandomEntry;
using warmgraph::test::test_seed;

std::set<std::uint64_t> bytes_of(const CopyNode& copy, const Slot& end, const Pitch& pitch)
{
    std::set<std::uint64_t> bytes;
    for (std::uint64_t slice = 0; slice < copy.slices; ++slice)
        for (std::uint64_t row = 0; row < copy.rows; ++row)
            for (std::uint64_t byte = 0; byte < copy.size; ++byte)
                bytes.insert(static_cast<std::uint64_t>(end.addend) + slice * pitch.slice + row * pitch.row + byte);
    return bytes;
}

bool shares_a_byte(const CopyNode& copy)
{
    const auto source = bytes_of(copy, copy.source, copy.source_pitch);
    const auto destination = bytes_of(copy, copy.destination, copy.destination_pitch);
    return std::ranges::any_of(source, [&](std::uint64_t byte) { return destination.contains(byte); });
}

TEST(CopyOverlap, IsFoundExactlyWhereAByteIsShared)
{
    const std::uint64_t seed = test_seed();
    RandomEntry random{seed};
    int overlapping = 0, apart = 0;
    for (int round = 0; round < 4'000; ++round) {
        Graph graph = sample_graph();
        CopyNode copy{region_slot(4, static_cast<std::int64_t>(random.below(80))),
                      region_slot(4, static_cast<std::int64_t>(random.below(80))), 1 + random.below(6)};
        copy.rows = 1 + random.below(3), copy.slices = 1 + random.below(3);
        const std::uint64_t row = copy.size + random.below(8);
        copy.source_pitch = copy.destination_pitch = {row, row * (copy.rows + random.below(3))};
        const bool shares = shares_a_byte(copy);
        ++(shares ? overlapping : apart);
        graph.nodes[2] = copy;
        const auto valid = validate(graph);
        ASSERT_EQ(valid.has_value(), !shares) << "WARMGRAPH_TEST_SEED=" << seed << " round " << round;
        if (!shares) continue;
        ASSERT_TRUE(failed_with(valid, ErrorCode::corrupt, "source and destination overlap"));
    }
    EXPECT_GT(overlapping, 100);
    EXPECT_GT(apart, 100);
}

TEST(CopyOverlap, IsNeverMissedBetweenTwoPitches)
{
    const std::uint64_t seed = test_seed();
    RandomEntry random{seed};
    int accepted = 0;
    for (int round = 0; round < 4'000; ++round) {
        Graph graph = sample_graph();
        CopyNode copy{region_slot(4, static_cast<std::int64_t>(random.below(160))),
                      region_slot(4, static_cast<std::int64_t>(random.below(160))), 1 + random.below(6)};
        copy.rows = 1 + random.below(3);
        copy.source_pitch = {copy.size + random.below(8), 0};
        copy.destination_pitch = {copy.size + random.below(8), 0};
        graph.nodes[2] = copy;
        if (!validate(graph)) continue;
        ++accepted;
        ASSERT_FALSE(shares_a_byte(copy)) << "WARMGRAPH_TEST_SEED=" << seed << " round " << round;
    }
    EXPECT_GT(accepted, 100);
}

} // namespace
} // namespace warmgraph::cachefmt::test::copy_overlap_test
