#include <functional>

#include "expect_error.hpp"
#include "random_graph.hpp"
#include "sample_entry.hpp"

namespace warmgraph::cachefmt::test::difference_test {
namespace {

using warmgraph::test::RandomEntry;
using warmgraph::test::test_seed;

std::vector<std::string> after(const std::function<void(Graph&)>& change)
{
    Graph now = sample_graph();
    change(now);
    EXPECT_NE(graph_digest(now), graph_digest(sample_graph()));
    return difference(sample_graph(), now);
}

KernelNode& rope(Graph& graph) { return std::get<KernelNode>(graph.nodes[1]); }

TEST(Difference, IsEmptyForEqualGraphs) { EXPECT_TRUE(difference(sample_graph(), sample_graph()).empty()); }

TEST(Difference, TellsKernelsOfOneReadableNameApartByTheirWholeNames)
{
    Graph recorded = sample_graph(), now = sample_graph();
    rope(recorded).kernel = "_Z4ropeILi1ELi2ELi3EEvPf";
    rope(now).kernel = "_Z4ropeILi1ELi2ELi4EEvPf";
    EXPECT_THAT(difference(recorded, now),
                ElementsAre("kernel rope<1, 2, ...> (node 1): kernel '_Z4ropeILi1ELi2ELi3EEvPf' against "
                            "'_Z4ropeILi1ELi2ELi4EEvPf'"));
}

TEST(Difference, NamesNodeKernelAndParameter)
{
    EXPECT_THAT(after([](Graph& g) { rope(g).grid[0] = 8; }),
                ElementsAre("kernel rope (node 1): grid 4,1,1 against 8,1,1"));
    EXPECT_THAT(after([](Graph& g) { rope(g).block[1] = 2; }),
                ElementsAre("kernel rope (node 1): block 64,1,1 against 64,2,1"));
    EXPECT_THAT(after([](Graph& g) { rope(g).kernel = "rope2"; }),
                ElementsAre("kernel rope (node 1): kernel 'rope' against 'rope2'"));
    EXPECT_THAT(after([](Graph& g) { rope(g).kernel = "_Z5rope2ILi8EEvPf"; }),
                ElementsAre("kernel rope (node 1): kernel 'rope' against 'rope2<8>'"));
    EXPECT_THAT(after([](Graph& g) { rope(g).image = 1; }), ElementsAre("kernel rope (node 1): image 0 against 1"));
    EXPECT_THAT(after([](Graph& g) { rope(g).params[0].slots[0] = region_slot(3); }),
                ElementsAre("kernel rope (node 1): parameter 0: slot 0: kv + 1024 against w"));
    EXPECT_THAT(after([](Graph& g) { rope(g).params[1].slots[0].addend = -2; }),
                ElementsAre("kernel rope (node 1): parameter 1: slot 0: position + 1 against position - 2"));
    EXPECT_THAT(after([](Graph& g) { rope(g).params[2].local_size = 256; }),
                ElementsAre("kernel rope (node 1): parameter 2: work-group bytes 128 against 256"));
    EXPECT_THAT(after([](Graph& g) { rope(g).params[4].value[1] = std::byte{8}; }),
                ElementsAre("kernel rope (node 1): parameter 4: value at byte 1: 0909 against 0809"));
    EXPECT_THAT(after([](Graph& g) { rope(g).params[2] = {ParamKind::value, Bytes(4), 0, {}}; }),
                ElementsAre("kernel rope (node 1): parameter 2: local (local 128 B) against value (0 (4 B))"));
    EXPECT_THAT(after([](Graph& g) { rope(g).params.pop_back(); }),
                ElementsAre("kernel rope (node 1): parameters 5 against 4"));
}

TEST(Difference, NamesEverythingElse)
{
    EXPECT_THAT(after([](Graph& g) { g.regions[2].size = 1; }), ElementsAre("region 2 'kv': size 65536 against 1"));
    EXPECT_THAT(after([](Graph& g) { g.regions[0].kind = RegionKind::state; }),
                ElementsAre("region 0 'token': kind input against state"));
    EXPECT_THAT(
        after([](Graph& g) { g.regions[5].contents[3] = std::byte{0}; }),
        ElementsAre(
            "region 5 'table': contents at byte 3: 07070707070707070707070707 against 00070707070707070707070707"));
    EXPECT_THAT(after([](Graph& g) { g.regions.push_back({"new", RegionKind::input, 4, 1, {}}); }),
                ElementsAre("regions: 6 against 7", "region 6 'new' was not recorded and is there now"));
    EXPECT_THAT(after([](Graph& g) { g.regions[5].digest = digest_of(9); }),
                ElementsAre("region 5 'table': contents of its own against stored as 09090909"));
    EXPECT_THAT(after([](Graph& g) { g.regions[5].inside = 4, g.regions[5].inside_offset = 8; }),
                ElementsAre("region 5 'table': lies in its own memory against in region 4 'scratch' at byte 8"));
    EXPECT_THAT(after([](Graph& g) { g.scalars[1].type = DType::u32; }),
                ElementsAre("scalar 1 'scale': type f32 against u32"));
    EXPECT_THAT(after([](Graph& g) { g.images[0].origin = digest_of(9); }),
                ElementsAre("image 0 'llm': source 02020202 against source 09090909"));
    EXPECT_THAT(after([](Graph& g) { g.nodes[3] = FillNode{region_slot(4), Bytes(1), 1}; }),
                ElementsAre("empty (node 3): empty against fill (node 3)"));
    EXPECT_THAT(after([](Graph& g) { std::get<CopyNode>(g.nodes[2]).size = 512; }),
                ElementsAre("copy (node 2): size 1024 against 512"));
    EXPECT_THAT(after([](Graph& g) { std::get<FillNode>(g.nodes[0]).pattern[0] = std::byte{2}; }),
                ElementsAre("fill (node 0): pattern at byte 0: 01010101 against 02010101"));
    EXPECT_THAT(
        after([](Graph& g) { g.edges[1] = {0, 2}; }),
        ElementsAre("edge 1 -> 2 was recorded and is gone now", "edge 0 -> 2 was not recorded and is there now"));
    EXPECT_THAT(after([](Graph& g) { g.nodes.pop_back(), g.edges.resize(3); }),
                ElementsAre("nodes: 5 against 4", "kernel finish (node 4) was recorded and is gone now",
                            "edge 2 -> 4 was recorded and is gone now", "edge 3 -> 4 was recorded and is gone now"));
}

std::vector<std::string> after_in_cuda(const std::function<void(Graph&)>& change)
{
    Graph now = sample_cuda_graph();
    change(now);
    EXPECT_NE(graph_digest(now), graph_digest(sample_cuda_graph()));
    return difference(sample_cuda_graph(), now);
}

KernelNode& gemm(Graph& graph) { return std::get<KernelNode>(graph.nodes[6]); }
CopyNode& copy(Graph& graph) { return std::get<CopyNode>(graph.nodes[8]); }
FillNode& fill(Graph& graph) { return std::get<FillNode>(graph.nodes[9]); }
std::vector<MemoryOperation>& batch(Graph& graph) { return std::get<MemoryOperationsNode>(graph.nodes[12]).operations; }

SemaphoresNode& waits(Graph& graph) { return std::get<SemaphoresNode>(graph.nodes[13]); }
std::vector<SemaphoreUse>& signals(Graph& graph) { return std::get<SemaphoresNode>(graph.nodes[14]).uses; }

TEST(Difference, NamesWhatCudaAddsToALaunch)
{
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).shared_bytes = 1024; }),
                ElementsAre("kernel nvjet_gemm (node 6): dynamic shared bytes 232448 against 1024"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).packed = false; }),
                ElementsAre("kernel nvjet_gemm (node 6): parameters packed against separate"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).attributes[1].value[0] = std::byte{4}; }),
                ElementsAre("kernel nvjet_gemm (node 6): cluster dimension: 2,1,1 against 4,1,1"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).attributes[2].value.push_back(std::byte{0}); }),
                ElementsAre("kernel nvjet_gemm (node 6): priority: value of 4 bytes against of 5 bytes"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).attributes[0].value[8] = std::byte{0}; }),
                ElementsAre("kernel nvjet_gemm (node 6): access policy window: value at byte 8: "
                            "40000000000000000000000000000000... against 00000000000000000000000000000000..."));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).attributes[0].slots[0].addend = 64; }),
                ElementsAre("kernel nvjet_gemm (node 6): access policy window: slot 0: w against w + 64"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).attributes[2].id = 99; }),
                ElementsAre("kernel nvjet_gemm (node 6): priority was recorded and is gone now",
                            "kernel nvjet_gemm (node 6): attribute 99 was not recorded and is there now"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { gemm(g).function_attributes[0].value = 49'152; }),
                ElementsAre("kernel nvjet_gemm (node 6): function's max dynamic shared size bytes: 232448 against "
                            "49152"));
    EXPECT_THAT(
        after_in_cuda([](Graph& g) { gemm(g).function_attributes.pop_back(); }),
        ElementsAre("kernel nvjet_gemm (node 6): function's non portable cluster size allowed was recorded and is "
                    "gone now"));
}

TEST(Difference, NamesWhereAConstantLiesInAnArena)
{
    Graph recorded = sample_graph();
    recorded.regions[5].inside = 4;
    Graph now = recorded;
    now.regions[5].inside_offset = 16;
    EXPECT_NE(graph_digest(recorded), graph_digest(now));
    EXPECT_THAT(difference(recorded, now), ElementsAre("region 5 'table': lies in region 4 'scratch' at byte 0 "
                                                       "against in region 4 'scratch' at byte 16"));
    now = recorded;
    now.regions[5].inside = 77; // a value that validate() does not check
    EXPECT_THAT(difference(recorded, now), ElementsAre("region 5 'table': lies in region 4 'scratch' at byte 0 "
                                                       "against in region 77 '' at byte 0"));
}

TEST(Difference, NamesWhatCudaAddsElsewhere)
{
    EXPECT_THAT(after_in_cuda([](Graph& g) { copy(g).rows = 3; }), ElementsAre("copy (node 8): rows 4 against 3"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { copy(g).slices = 1; }), ElementsAre("copy (node 8): slices 2 against 1"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { copy(g).source_pitch.slice = 512; }),
                ElementsAre("copy (node 8): source pitch 64/256 against 64/512"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { copy(g).destination_pitch.row = 256; }),
                ElementsAre("copy (node 8): destination pitch 128/1024 against 256/1024"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { copy(g).source_space = MemorySpace::device; }),
                ElementsAre("copy (node 8): source memory host against device"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { copy(g).destination_space = MemorySpace::host; }),
                ElementsAre("copy (node 8): destination memory device against host"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { fill(g).rows = 2; }), ElementsAre("fill (node 9): rows 3 against 2"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { fill(g).pitch = 32; }), ElementsAre("fill (node 9): pitch 64 against 32"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.nodes[5] = EventWaitNode{1}; }),
                ElementsAre("event wait (node 5): ready against done"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.nodes[11] = EventRecordNode{0}; }),
                ElementsAre("event record (node 11): done against ready"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.nodes[11] = EventWaitNode{1}; }),
                ElementsAre("event record (node 11): event record against event wait (node 11)"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.nodes[10] = HostNode{"other"}; }),
                ElementsAre("host (node 10): function 'log_step' against 'other'"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { batch(g)[0].value = 2; }),
                ElementsAre("memory operations (node 12): operation 0: value 1 against 2"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { batch(g)[0].flags = 1; }),
                ElementsAre("memory operations (node 12): operation 0: flags 1073741824 against 1"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { batch(g)[0].address.addend = 12; }),
                ElementsAre("memory operations (node 12): operation 0: kv + 8 against kv + 12"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { batch(g)[1].kind = MemoryOperationKind::wait_64; }),
                ElementsAre("memory operations (node 12): operation 1: write 0x10000000000 to staging + 4088 (64 bits) "
                            "against wait until staging + 4088 >= 0x10000000000 (64 bits)"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { batch(g).pop_back(); }),
                ElementsAre("memory operations (node 12): operations 3 against 2"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.events[0] = "go"; }),
                ElementsAre("event 0 'ready': name 'ready' against 'go'"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.events.push_back("more"); }),
                ElementsAre("events: 2 against 3", "event 2 'more' was not recorded and is there now"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.edges[7].data = {}; }),
                ElementsAre("edge 6 -> 7: programmatic against plain"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.edges[7].data.from_port = 2; }),
                ElementsAre("edge 6 -> 7: programmatic against programmatic from launch"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.edges[8].data.to_port = 1; }),
                ElementsAre("edge 6 -> 8: from launch against from launch to port 1"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.images[1].variables[1].contents[3] = std::byte{0}; }),
                ElementsAre("image 1 'aux': variable 'lut': contents at byte 3: 06 against 00"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.images[1].variables.pop_back(); }),
                ElementsAre("image 1 'aux': variable 'lut' was recorded and is gone now"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.regions[6].space = MemorySpace::device; }),
                ElementsAre("region 6 'staging': memory host against device"));
}

TEST(Difference, NamesWhatSemaphoresAreGiven)
{
    EXPECT_THAT(after_in_cuda([](Graph& g) { waits(g).action = SemaphoreAction::signal; }),
                ElementsAre("semaphore wait (node 13): wait against signal"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { waits(g).uses[0].semaphore = 0; }),
                ElementsAre("semaphore wait (node 13): semaphore 0: shown against frame"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { waits(g).uses[0].value = 8; }),
                ElementsAre("semaphore wait (node 13): semaphore 0: value 7 against 8"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { waits(g).uses[0].flags = 0; }),
                ElementsAre("semaphore wait (node 13): semaphore 0: flags 2 against 0"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { signals(g)[0].slot->addend = 2; }),
                ElementsAre("semaphore signal (node 14): semaphore 0: step + 1 against step + 2"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { signals(g)[0].slot.reset(); }),
                ElementsAre("semaphore signal (node 14): semaphore 0: slots 1 against 0"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { signals(g).pop_back(); }),
                ElementsAre("semaphore signal (node 14): semaphores 2 against 1"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.semaphores[0] = "picture"; }),
                ElementsAre("semaphore 0 'frame': name 'frame' against 'picture'"));
    EXPECT_THAT(after_in_cuda([](Graph& g) { g.semaphores.push_back("more"); }),
                ElementsAre("semaphores: 2 against 3", "semaphore 2 'more' was not recorded and is there now"));
}

TEST(Difference, StopsAtItsLimitAndSaysHowManyMore)
{
    Graph now = sample_graph();
    for (Region& region : now.regions) region.alignment = 1;
    EXPECT_THAT(difference(sample_graph(), now, 3),
                ElementsAre("region 0 'token': alignment 4 against 1", "region 1 'logits': alignment 64 against 1",
                            "and 4 more differences"));
}

TEST(Difference, IsEmptyExactlyWhenTheDigestsAreEqual)
{
    const std::uint64_t seed = test_seed();
    for (std::uint64_t round = 0; round < 300; ++round) {
        const Graph one = RandomEntry{seed + round}.graph();
        const Graph two = RandomEntry{seed + round + (round % 2)}.graph();
        ASSERT_EQ(difference(one, two).empty(), graph_digest(one) == graph_digest(two))
            << "WARMGRAPH_TEST_SEED=" << seed + round;
    }
}

} // namespace
} // namespace warmgraph::cachefmt::test::difference_test
