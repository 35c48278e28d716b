// Two halves as one entry and back.
#include <array>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "random_graph.hpp"
#include "sample_pair.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt::test::halves_test {
namespace {

using testing::HasSubstr;
using warmgraph::test::failed_with;

TEST(Halves, JoinedTheyAreOneEntryThatSurvivesItsFile)
{
    const Entry pair = sample_pair();
    EXPECT_EQ(pair.graph.nodes.size(), 5U);
    EXPECT_EQ(pair.graph.second_half, 3U);
    EXPECT_EQ(pair.header.info.answer_ms, 12);
    EXPECT_EQ(std::ranges::count(pair.graph.regions, std::string{"saved.h"}, &Region::name), 1);
    const auto bytes = encode(pair);
    ASSERT_TRUE(bytes) << bytes.error().message;
    const auto read = decode(*bytes, pair.header.key);
    ASSERT_TRUE(read) << read.error().message;
    EXPECT_EQ(*read, pair);
    EXPECT_THAT(to_readable(pair), HasSubstr("saved.h"));
}

TEST(Halves, ComeApartAsTheyWere)
{
    const Entry forward = forward_half(), backward = backward_half(forward), pair = sample_pair();
    for (const auto& [half, was] : {std::pair{Half::forward, &forward}, std::pair{Half::backward, &backward}}) {
        auto is = half_of(pair, half);
        ASSERT_TRUE(is) << is.error().message;
        EXPECT_EQ(is->header.key, was->header.key) << to_string(half);
        EXPECT_EQ(is->header.guards, was->header.guards);
        // What is saved is as aligned as either half needs it.
        for (Region& region : is->graph.regions)
            if (region.name == "h") region.alignment = half == Half::forward ? 64 : 256;
        EXPECT_EQ(is->graph, was->graph) << fmt::format("{}", fmt::join(difference(was->graph, is->graph), "\n"));
        EXPECT_EQ(half_header(pair.header, half)->guards, was->header.guards);
    }
}

TEST(Halves, TheDigestOfTheGuardsCoversBothHalves)
{
    const Entry forward = forward_half(), backward = backward_half(forward);
    Entry other = backward;
    other.header.guards.tensors[0].sizes = {5};
    give_key(other);
    EXPECT_NE(join(forward, other, k_saved_of_pair)->header.key, sample_pair().header.key);
    Entry another = forward;
    another.header.guards.values[0].bits = 2;
    give_key(another);
    EXPECT_NE(join(another, backward_half(another), k_saved_of_pair)->header.key, sample_pair().header.key);
}

TEST(Halves, ThatDoNotBelongTogetherAreNotJoined)
{
    const Entry forward = forward_half(), backward = backward_half(forward);
    Entry another = forward;
    another.header.guards.values[0].bits = 2;
    give_key(another);
    EXPECT_TRUE(failed_with(join(another, backward, k_saved_of_pair), ErrorCode::not_recordable));
    Entry elsewhere = backward;
    elsewhere.header.guards.facts[0].value = "3.2";
    give_key(elsewhere);
    EXPECT_TRUE(failed_with(join(forward, elsewhere, k_saved_of_pair), ErrorCode::not_recordable));
    Entry outside = backward;
    outside.graph.events = {"done"};
    EXPECT_TRUE(failed_with(join(forward, outside, k_saved_of_pair), ErrorCode::unsupported));
}

TEST(Halves, APlainEntryHasNone)
{
    const Entry plain = sample_entry();
    EXPECT_FALSE(is_pair(plain.header.guards));
    EXPECT_FALSE(half_header(plain.header, Half::forward));
    EXPECT_TRUE(failed_with(half_of(plain, Half::forward), ErrorCode::corrupt));
    EXPECT_EQ(graph_digest(plain.graph), graph_digest(sample_graph())) << "and its digest is what it was";
}

// --- hostile ones

TEST(Halves, ThatUseEachOthersMemoryDoNotComeApart)
{
    Entry pair = sample_pair();
    auto& kernel = std::get<KernelNode>(pair.graph.nodes[3]);
    for (const std::uint32_t target : {0U, 4U, 5U}) { // forward.x, forward.scratch, forward.table
        kernel.params[0].slots[0].target = target;
        EXPECT_TRUE(half_of(pair, Half::forward));
        EXPECT_TRUE(failed_with(half_of(pair, Half::backward), ErrorCode::corrupt)) << target;
    }
    pair = sample_pair();
    std::get<FillNode>(pair.graph.nodes[0]).destination.target =
        static_cast<std::uint32_t>(pair.graph.regions.size() - 1);
    EXPECT_TRUE(failed_with(half_of(pair, Half::forward), ErrorCode::corrupt));
}

TEST(Halves, ABackwardHalfThatBeginsNowhereOrWaitsForForwardIsNoMeaning)
{
    Entry pair = sample_pair();
    pair.graph.second_half = 6;
    EXPECT_TRUE(failed_with(validate(pair.graph, {}), ErrorCode::corrupt));
    pair.graph.second_half = 2; // an edge leads from 1 to 2
    EXPECT_TRUE(failed_with(validate(pair.graph, {}), ErrorCode::corrupt));
    EXPECT_TRUE(failed_with(half_of(pair, Half::backward), ErrorCode::corrupt));
    pair.graph.second_half.reset();
    EXPECT_TRUE(failed_with(half_of(pair, Half::backward), ErrorCode::corrupt));
}

/// Whatever is in a file that decodes, taking it apart gives a graph that means something, or an error.
TEST(Halves, OfRandomGraphsAreMeaningfulOrRefused)
{
    warmgraph::test::RandomEntry random{warmgraph::test::test_seed()};
    int apart = 0;
    for (int i = 0; i < 500; ++i) {
        Entry entry = random.entry();
        entry.header.guards.facts = {{k_saved_fact, "h"}};
        entry.graph.events.clear(), entry.graph.semaphores.clear();
        for (std::size_t r = 0; r < entry.graph.regions.size(); ++r) {
            constexpr std::array<const char*, 4> k_prefixes{"forward.", "backward.", "saved.", ""};
            entry.graph.regions[r].name = k_prefixes[random.below(4)] + entry.graph.regions[r].name;
        }
        entry.graph.second_half = static_cast<std::uint32_t>(random.below(entry.graph.nodes.size() + 2));
        for (const Half half : {Half::forward, Half::backward}) {
            const auto taken = half_of(entry, half);
            apart += taken ? 1 : 0;
            if (!taken) continue;
            for (const Edge& edge : taken->graph.edges) EXPECT_LT(edge.to, taken->graph.nodes.size());
        }
    }
    EXPECT_GT(apart, 0);
}

} // namespace
} // namespace warmgraph::cachefmt::test::halves_test
