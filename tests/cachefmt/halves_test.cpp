// Two halves as one entry and back.
#include <array>

#include <fmt/ranges.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "expect_error.hpp"
#include "random_graph.hpp"
#include "sample_entry.hpp"
#include "warmgraph/cachefmt/halves.hpp"
#include "warmgraph/cachefmt/readable.hpp"

namespace warmgraph::cachefmt::test::halves_test {
namespace {

using testing::HasSubstr;
using warmgraph::test::failed_with;

const std::vector<std::string> k_saved{"h"};

Slot scalar_slot(std::uint32_t target) { return {SlotKind::scalar, target, 0, 4, 0}; }

void give_key(Entry& entry)
{
    entry.header.key = {{"Toy_static_clgraphcache_1a2b3c4d5e6f", "world1global_rank0", "step"},
                        guards_digest(entry.header.guards)};
    entry.header.info.node_count = static_cast<std::uint32_t>(entry.graph.nodes.size());
    entry.header.info.image_count = static_cast<std::uint32_t>(entry.graph.images.size());
}

Guards guards_of(const std::vector<std::string>& tensors)
{
    Guards guards;
    guards.facts = {{"driver.version", "3.1"}, {k_saved_fact, "h f32 [4]"}, {"rank", "r", Role::identity}};
    for (const auto& name : tensors)
        guards.tensors.push_back(
            {name, DType::f32, {4}, {1}, "opencl:0", 256, static_cast<std::uint32_t>(guards.tensors.size())});
    return guards;
}

KernelNode kernel(std::uint32_t image, const std::string& name, const std::vector<Slot>& slots)
{
    KernelNode node{image, name, {1, 1, 1}, {4, 1, 1}, {}};
    for (const Slot& slot : slots)
        node.params.push_back(slot.kind == SlotKind::region ? Param{ParamKind::memory, {}, 0, {slot}}
                                                            : Param{ParamKind::value, Bytes(4), 0, {slot}});
    return node;
}

Entry forward_half()
{
    Entry entry;
    entry.header.guards = guards_of({"x", "y", "h", "w"});
    entry.header.guards.tensors[3].alias_group = 0; // w overlaps x
    entry.header.guards.values = {{"mode", DType::i32, 1}};
    entry.graph.regions = {
        {"x", RegionKind::input, 16, 64, {}},        {"y", RegionKind::output, 16, 64, {}},
        {"h", RegionKind::output, 16, 64, {}},       {"w", RegionKind::weights, 16, 4, {}},
        {"scratch", RegionKind::arena, 64, 256, {}}, {"table", RegionKind::constant, 8, 8, Bytes(8, std::byte{3})}};
    entry.graph.scalars = {{"scale", DType::f32}};
    entry.graph.images = {{digest_of(1), 100, {}, "one"}, {digest_of(2), 200, {}, "two"}};
    entry.graph.nodes = {FillNode{region_slot(4), Bytes(4), 64},
                         kernel(1, "f", {region_slot(0), region_slot(3), region_slot(2), scalar_slot(0)}),
                         kernel(0, "g", {region_slot(2), region_slot(5), region_slot(1)})};
    entry.graph.edges = {{0, 1}, {1, 2}};
    entry.header.info.scalar_proofs = {"scale: sampled"};
    entry.header.info.answer_ms = 5;
    give_key(entry);
    return entry;
}

Entry backward_half(const Entry& forward)
{
    Entry entry;
    entry.header.guards = guards_of({"dy", "x", "h", "dx"});
    entry.header.guards.tensors[3].alias_group = 0; // in place
    entry.header.guards.facts.insert(entry.header.guards.facts.begin() + 1,
                                     {k_forward_fact, to_hex(forward.header.key.guards_digest)});
    entry.graph.regions = {{"dy", RegionKind::input, 16, 64, {}},
                           {"x", RegionKind::input, 16, 64, {}},
                           {"h", RegionKind::input, 16, 256, {}},
                           {"dx", RegionKind::output, 16, 64, {}},
                           {"scratch", RegionKind::arena, 32, 256, {}}};
    entry.graph.scalars = {{"scale", DType::f32}};
    entry.graph.images = {{digest_of(2), 200, {}, "two"}};
    entry.graph.nodes = {kernel(0, "b", {region_slot(0), region_slot(2), region_slot(4), scalar_slot(0)}),
                         CopyNode{region_slot(4), region_slot(3), 16}};
    entry.graph.edges = {{0, 1}};
    entry.header.info.answer_ms = 7;
    give_key(entry);
    return entry;
}

Entry joined()
{
    const Entry forward = forward_half();
    return *join(forward, backward_half(forward), k_saved);
}

TEST(Halves, JoinedTheyAreOneEntryThatSurvivesItsFile)
{
    const Entry pair = joined();
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
    const Entry forward = forward_half(), backward = backward_half(forward), pair = joined();
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
    EXPECT_NE(join(forward, other, k_saved)->header.key, joined().header.key);
    Entry another = forward;
    another.header.guards.values[0].bits = 2;
    give_key(another);
    EXPECT_NE(join(another, backward_half(another), k_saved)->header.key, joined().header.key);
}

TEST(Halves, ThatDoNotBelongTogetherAreNotJoined)
{
    const Entry forward = forward_half(), backward = backward_half(forward);
    Entry another = forward;
    another.header.guards.values[0].bits = 2;
    give_key(another);
    EXPECT_TRUE(failed_with(join(another, backward, k_saved), ErrorCode::not_recordable));
    Entry elsewhere = backward;
    elsewhere.header.guards.facts[0].value = "3.2";
    give_key(elsewhere);
    EXPECT_TRUE(failed_with(join(forward, elsewhere, k_saved), ErrorCode::not_recordable));
    Entry outside = backward;
    outside.graph.events = {"done"};
    EXPECT_TRUE(failed_with(join(forward, outside, k_saved), ErrorCode::unsupported));
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
    Entry pair = joined();
    auto& kernel = std::get<KernelNode>(pair.graph.nodes[3]);
    for (const std::uint32_t target : {0U, 4U, 5U}) { // forward.x, forward.scratch, forward.table
        kernel.params[0].slots[0].target = target;
        EXPECT_TRUE(half_of(pair, Half::forward));
        EXPECT_TRUE(failed_with(half_of(pair, Half::backward), ErrorCode::corrupt)) << target;
    }
    pair = joined();
    std::get<FillNode>(pair.graph.nodes[0]).destination.target =
        static_cast<std::uint32_t>(pair.graph.regions.size() - 1);
    EXPECT_TRUE(failed_with(half_of(pair, Half::forward), ErrorCode::corrupt));
}

TEST(Halves, ABackwardHalfThatBeginsNowhereOrWaitsForForwardIsNoMeaning)
{
    Entry pair = joined();
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
