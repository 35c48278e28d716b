#include <gtest/gtest.h>

#include "warmgraph/backends/raw_graph.hpp"

namespace warmgraph::backends::test::raw_graph_test {
namespace {

using enum MemoryOperationKind;

RawMemoryOperation operation(MemoryOperationKind kind, std::uint64_t value)
{
    return {kind, Address::from_flat(4096), value, 0};
}

RawKernel kernel(std::string name)
{
    RawKernel work;
    work.kernel = std::move(name);
    return work;
}

RawGraph graph_of(std::vector<RawWork> works)
{
    RawGraph graph;
    for (RawWork& work : works) graph.nodes.push_back({std::move(work), {}});
    for (std::uint32_t i = 1; i < graph.nodes.size(); ++i) graph.nodes[i].dependencies = {i - 1};
    return graph;
}

const RawWork k_fill = RawFill{Address::from_flat(512), Bytes(4), 64};

TEST(RawGraph, OutsideWorkIsWhatOthersTakePartIn)
{
    const std::vector<RawWork> outside{RawSemaphores{SemaphoreAction::wait, {{1, 2, 0}}}, RawHost{}, RawEventRecord{1},
                                       RawEventWait{1}, RawMemoryOperations{{operation(wait_64, 3)}}};
    for (const RawWork& work : outside) {
        const RawGraph graph = graph_of({k_fill, work, k_fill});
        EXPECT_TRUE(has_outside_work(graph));
        const RawGraph without = without_outside(graph);
        EXPECT_FALSE(has_outside_work(without));
        EXPECT_EQ(without, graph_of({k_fill, RawEmpty{}, k_fill})) << "in their places, with their edges";
    }
    const RawGraph plain = graph_of({k_fill, RawEmpty{}, kernel("add"), RawCopy{}});
    EXPECT_FALSE(has_outside_work(plain));
    EXPECT_EQ(without_outside(plain), plain);
}

TEST(RawGraph, ABatchOfMemoryOperationsLosesItsWaitsAndKeepsItsWrites)
{
    const RawMemoryOperation write = operation(write_32, 1), barrier = operation(MemoryOperationKind::barrier, 0);
    const RawGraph graph =
        graph_of({RawMemoryOperations{{operation(wait_32, 1), write, operation(wait_64, 2), barrier}}});
    EXPECT_TRUE(has_outside_work(graph));
    EXPECT_EQ(without_outside(graph), graph_of({RawMemoryOperations{{write, barrier}}}));
    EXPECT_FALSE(has_outside_work(graph_of({RawMemoryOperations{{write}}})));
}

TEST(RawGraph, IsNoLongerTheDriversOwnOnceNodesWereReplaced)
{
    const auto native = std::make_shared<int>(1);
    RawGraph graph = graph_of({k_fill, RawSemaphores{}});
    graph.native = native;
    graph.owner = native;
    const RawGraph without = without_outside(graph);
    EXPECT_EQ(without.native, nullptr);
    EXPECT_EQ(without.owner, native) << "the addresses are the same";
    graph = graph_of({RawMemoryOperations{{operation(wait_32, 1), operation(write_32, 1)}}});
    graph.native = native;
    EXPECT_EQ(without_outside(graph).native, nullptr);
    graph = graph_of({k_fill});
    graph.native = native;
    EXPECT_EQ(without_outside(graph).native, native);
}

RawAllocation allocation(std::uint64_t start, std::uint64_t size) { return {{Address::from_flat(start), size}}; }

TEST(RawGraph, HasItsAllocationsInTheOrderInWhichItMakesThem)
{
    const std::vector<RawAllocation> upwards{allocation(0x1000, 16), allocation(0x2000, 32)};
    EXPECT_EQ(merged(upwards), upwards);
    const std::vector<RawAllocation> downwards{allocation(0x2000, 16), allocation(0x1000, 32)};
    EXPECT_EQ(merged(downwards), downwards);
    EXPECT_TRUE(merged({}).empty());
}

TEST(RawGraph, HasOneAllocationWhereALaterOneGetsAnEarlierOnesMemory)
{
    EXPECT_EQ(merged({allocation(0x3000, 16), allocation(0x1000, 64), allocation(0x1020, 0x100)}),
              (std::vector{allocation(0x3000, 16), allocation(0x1000, 0x120)}));
    EXPECT_EQ(merged({allocation(0x1020, 0x100), allocation(0x3000, 16), allocation(0x1000, 64)}),
              (std::vector{allocation(0x1000, 0x120), allocation(0x3000, 16)}));
    EXPECT_EQ(merged({allocation(0x1000, 16), allocation(0x1010, 16)}).size(), 2U) << "neighbours";
}

TEST(RawGraph, SpellsACopyWithoutGapsInOneWay)
{
    const RawCopy plain{.source = Address::from_flat(0x1000), .destination = Address::from_flat(0x2000), .size = 96};
    RawCopy rows = plain;
    rows.size = 32;
    rows.rows = 3;
    rows.source_pitch.row = rows.destination_pitch.row = 32;
    EXPECT_EQ(canonical(rows), plain);
    RawCopy slices = plain;
    slices.size = 16;
    slices.rows = 2;
    slices.slices = 3;
    slices.source_pitch = slices.destination_pitch = {16, 32};
    EXPECT_EQ(canonical(slices), plain);
    for (Pitch RawCopy::* const side : {&RawCopy::source_pitch, &RawCopy::destination_pitch}) {
        RawCopy gaps = rows;
        (gaps.*side).row = 40;
        EXPECT_EQ(canonical(gaps), gaps);
        RawCopy between_slices = slices;
        (between_slices.*side).slice = 48;
        EXPECT_EQ(canonical(between_slices), between_slices);
    }
    EXPECT_EQ(canonical(plain), plain);
}

TEST(RawGraph, SpellsAFillWithoutGapsInOneWay)
{
    const RawFill plain{Address::from_flat(0x1000), Bytes(1, std::byte{7}), 96};
    EXPECT_EQ(canonical({plain.destination, Bytes(4, std::byte{7}), 96}), plain);
    EXPECT_EQ(canonical({plain.destination, Bytes(2, std::byte{7}), 32, 3, 32}), plain);
    const RawFill gaps{plain.destination, Bytes(1, std::byte{7}), 32, 3, 40};
    EXPECT_EQ(canonical(gaps), gaps);
    const RawFill words{plain.destination, {std::byte{1}, std::byte{2}}, 96};
    EXPECT_EQ(canonical(words), words);
}

TEST(RawGraph, KnowsTheKernelsOfNcclByTheirNames)
{
    for (const char* name : {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclKernel_AllReduce_RING_LL_Sum_float",
                             "ncclKernel_Broadcast_TREE_LL", "ncclSymDevKernel_AllReduce_AGxLL_R_sum_f32",
                             "_Z40ncclDevKernel_AllReduce_Sum_f32_RING_LL24ncclDevKernelArgsStorageILm4096EE",
                             "_Z21ncclDevKernel_GenericP11ncclDevCommmP8ncclWork"})
        EXPECT_TRUE(has_collectives(graph_of({k_fill, kernel(name)}))) << name;
    for (const char* name : {"add", "", "my_ncclKernel", "_Z16like_ncclKernel_Pf", "triton_nccl_fused"})
        EXPECT_FALSE(has_collectives(graph_of({k_fill, kernel(name)}))) << name;
    EXPECT_FALSE(has_collectives({}));
}

} // namespace
} // namespace warmgraph::backends::test::raw_graph_test
