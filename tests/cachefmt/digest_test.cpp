#include <functional>
#include <set>

#include "expect_error.hpp"
#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test::digest_test {
namespace {

TEST(GuardsDigest, ChangesWithEveryGuardThatMustMatch)
{
    const std::vector<std::function<void(Guards&)>> changes{
        [](Guards& g) { g.facts[0].name += "x"; },
        [](Guards& g) { g.facts[0].value += "x"; },
        [](Guards& g) { g.facts[3].value = "4"; },
        [](Guards& g) { g.facts[0].role = Role::advisory; },
        [](Guards& g) { g.facts.erase(g.facts.begin() + 2); },
        [](Guards& g) { g.facts[0] = {"code.idabc123", "", Role::must_match}; }, // the lengths of name and value count
        [](Guards& g) { g.tensors[0].name += "x"; },
        [](Guards& g) { g.tensors[0].dtype = DType::u32; },
        [](Guards& g) { g.tensors[1].sizes[0] = 3; },
        [](Guards& g) { g.tensors[1].strides[0] = 128; },
        [](Guards& g) { g.tensors[1].sizes = {2}, g.tensors[1].strides = {128}; },
        [](Guards& g) { g.tensors[0].device = "opencl:1"; },
        [](Guards& g) { g.tensors[0].alignment = 8; },
        [](Guards& g) { g.tensors[2].alias_group = 0; },
        [](Guards& g) { g.tensors[2].distance = 128; },
        [](Guards& g) { g.tensors[2].distance.reset(); },
        [](Guards& g) { g.tensors[0].distance = 0; }, // a distance of 0 is another guard than no distance
        [](Guards& g) { std::swap(g.tensors[0], g.tensors[1]); },
        [](Guards& g) { g.values[0].name += "x"; },
        [](Guards& g) { g.values[0].dtype = DType::u32; },
        [](Guards& g) { g.values[0].bits += 1; },
        [](Guards& g) { g.values.pop_back(); },
    };
    std::set<Digest> digests{guards_digest(sample_guards())};
    for (const auto& change : changes) {
        Guards guards = sample_guards();
        change(guards);
        EXPECT_TRUE(digests.insert(guards_digest(guards)).second) << "change " << digests.size() - 1;
    }
}

TEST(GuardsDigest, IgnoresIdentityAndAdvisoryFacts)
{
    Guards guards = sample_guards();
    guards.facts[1].value = "another name";
    guards.facts[4].value = "another model";
    guards.facts.push_back({"path", "/somewhere", Role::advisory});
    EXPECT_EQ(guards_digest(guards), guards_digest(sample_guards()));
}

TEST(GuardsDigest, IsTheSameInEveryBuild)
{
    // This digest is a part of the format, because it is in the names of existing files. The value was computed from
    // the page with Python's hashlib.
    EXPECT_EQ(to_hex(guards_digest({})), "18bf434f755deb6c7256c0e069aea0db36bc0c152bccecea04c13d9f0ac66470");
    EXPECT_EQ(to_hex(guards_digest(sample_guards())),
              "b295fed27cc0642630561c9ec3c76e26bf2de4138261e4efeda2302879419d52");
    EXPECT_EQ(to_hex(graph_digest(sample_graph())), "bdc39117f82cb09235530c9e0dac53017b0408cebe1f62e838c1eff03bda0ee5");
    EXPECT_EQ(to_hex(graph_digest(sample_cuda_graph())),
              "64039bcd632575de2b2b765ec409ca182832e500e75daed190c65304d158180d");
}

TEST(GraphDigest, CountsAnImageByItsSourceWhereThatIsKnown)
{
    Graph rebuilt = sample_graph();
    rebuilt.images[0].digest = digest_of(77); // PoCL makes different binaries from one source
    rebuilt.images[0].size = 4001;
    rebuilt.images[0].label = "renamed";
    EXPECT_EQ(graph_digest(rebuilt), graph_digest(sample_graph()));
    rebuilt.images[1].digest = digest_of(78); // the source of this image is not known
    EXPECT_NE(graph_digest(rebuilt), graph_digest(sample_graph()));
}

TEST(GraphDigest, IgnoresWhatLiesUnderSlots)
{
    Graph other = sample_graph();
    auto& params = std::get<KernelNode>(other.nodes[1]).params;
    params[1].value.assign(4, std::byte{18}); // another position, as in the second recording
    EXPECT_EQ(graph_digest(other), graph_digest(sample_graph()));
    EXPECT_TRUE(difference(sample_graph(), other).empty());
    params[3].value[12] = std::byte{43}; // bytes between two slots
    EXPECT_NE(graph_digest(other), graph_digest(sample_graph()));
    Graph cuda = sample_cuda_graph();
    auto& address = std::get<KernelNode>(cuda.nodes[6]).attributes[0].value;
    std::fill_n(address.begin(), 8, std::byte{18}); // the address in the second recording
    EXPECT_EQ(graph_digest(cuda), graph_digest(sample_cuda_graph()));
    EXPECT_TRUE(difference(sample_cuda_graph(), cuda).empty());
    auto& signals = std::get<SemaphoresNode>(cuda.nodes[14]).uses;
    signals[0].value = 12, signals[1].value |= 12;
    EXPECT_EQ(graph_digest(cuda), graph_digest(sample_cuda_graph()));
    EXPECT_TRUE(difference(sample_cuda_graph(), cuda).empty());
    signals[1].value = 12; // the half of the value that has no slot
    EXPECT_NE(graph_digest(cuda), graph_digest(sample_cuda_graph()));
    cuda = sample_cuda_graph();
    auto& window = std::get<KernelNode>(cuda.nodes[6]).attributes[0].value;
    window[8] = std::byte{43}; // a byte after the slot
    EXPECT_NE(graph_digest(cuda), graph_digest(sample_cuda_graph()));
}

TEST(WithoutScratch, GraphsDifferInEverythingButHowScratchLies)
{
    const auto rest = [](const Graph& graph) { return graph_digest(without_scratch(graph)); };
    const Digest plain = rest(sample_graph());
    const auto after = [&rest](const std::function<void(Graph&)>& change) {
        Graph graph = sample_graph();
        change(graph);
        return rest(graph);
    };
    EXPECT_EQ(plain, after([](Graph& g) { g.regions[4] = {"pool", RegionKind::arena, 1U << 20U, 512, {}}; }));
    EXPECT_EQ(plain, after([](Graph& g) { std::get<FillNode>(g.nodes[0]).destination.addend = 1024; }));
    EXPECT_EQ(plain, after([](Graph& g) { std::get<KernelNode>(g.nodes[1]).params[3].slots[0].addend = 0; }));
    // A new region before another region changes the other region's number.
    EXPECT_EQ(plain, after([](Graph& g) {
                  g.regions.insert(g.regions.begin() + 5, {"more", RegionKind::arena, 64, 64, {}});
                  std::get<CopyNode>(g.nodes[2]).source.target = 5;
              }));
    EXPECT_NE(plain, after([](Graph& g) { std::get<CopyNode>(g.nodes[2]).source.target = 2; })) << "declared memory";
    EXPECT_NE(plain, after([](Graph& g) { std::get<CopyNode>(g.nodes[2]).destination.addend = 64; }));
    EXPECT_NE(plain, after([](Graph& g) { std::get<KernelNode>(g.nodes[1]).params[3].slots[1].addend = 64; }));
    EXPECT_NE(plain, after([](Graph& g) { std::get<KernelNode>(g.nodes[1]).params[3].slots[0].offset = 4; }));
    EXPECT_NE(plain, after([](Graph& g) { g.regions[5].contents[0] = std::byte{8}; })) << "a constant";
    EXPECT_NE(plain, after([](Graph& g) { g.nodes.pop_back(); }));
}

TEST(WithoutScratch, WhatScratchHeldCountsAndNotWhereItLay)
{
    const auto with = [](std::uint64_t offset, std::byte held) {
        Graph graph = sample_graph();
        Region& kept = graph.regions.emplace_back(
            Region{fmt::format("scratch from byte {}", offset), RegionKind::constant, 4, 4, Bytes(4, held)});
        kept.inside = 4;
        kept.inside_offset = offset;
        return graph_digest(without_scratch(graph));
    };
    EXPECT_EQ(with(64, std::byte{1}), with(128, std::byte{1}));
    EXPECT_NE(with(64, std::byte{1}), with(64, std::byte{2}));
}

} // namespace
} // namespace warmgraph::cachefmt::test::digest_test
