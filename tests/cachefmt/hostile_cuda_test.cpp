// Promise F4: faults in the CUDA parts of a graph. Each is refused before a driver gets the graph.
#include "hostile.hpp"

namespace warmgraph::cachefmt::test::hostile_cuda_test {
namespace {

KernelNode& gemm(Graph& graph) { return std::get<KernelNode>(graph.nodes[6]); }
CopyNode& copy_of(Graph& graph) { return std::get<CopyNode>(graph.nodes[8]); }
FillNode& fill_of(Graph& graph) { return std::get<FillNode>(graph.nodes[9]); }
std::vector<MemoryOperation>& batch(Graph& graph) { return std::get<MemoryOperationsNode>(graph.nodes[12]).operations; }
HostNode& host(Graph& graph) { return std::get<HostNode>(graph.nodes[10]); }
EdgeData& programmatic(Graph& graph) { return graph.edges[7].data; } // the edge from node 6 to node 7, both kernels
std::vector<ModuleVariable>& variables(Graph& graph) { return graph.images[1].variables; }

const std::vector<Hostile>& hostile_launches()
{
    static const std::vector<Hostile> k_graphs{
        {"AttributeTwice", [](Graph& g) { gemm(g).attributes[1].id = 1; },
         "kernel nvjet_gemm (node 6): attribute 1 is repeated or out of order"},
        {"AttributesUnsorted", [](Graph& g) { std::swap(gemm(g).attributes[1], gemm(g).attributes[2]); },
         "attribute 4 is repeated or out of order"},
        {"AttributeEmpty", [](Graph& g) { gemm(g).attributes[2].value.clear(); },
         "priority: value has 0 bytes, expected 1 to 64"},
        {"AttributeLong", [](Graph& g) { gemm(g).attributes[2].value.resize(65); },
         "priority: value has 65 bytes, expected 1 to 64"},
        {"AttributesTooMany",
         [](Graph& g) {
             for (std::uint32_t i = 9; i < 71; ++i) gemm(g).attributes.push_back({i, Bytes(4), {}});
         },
         "65 attributes are over the limit of 64"},
        {"AttributeSlotOutside", [](Graph& g) { gemm(g).attributes[0].slots[0].offset = 25; },
         "access policy window: slot 0: bytes 25 to 33 are outside the attribute's 32"},
        {"AttributeSlotsOverlap", [](Graph& g) { gemm(g).attributes[0].slots.push_back(region_slot(2, 0, 4)); },
         "access policy window: slot 1: offset 4 overlaps the slot before it, or is before it"},
        {"AttributeSlotOfNoRegion", [](Graph& g) { gemm(g).attributes[0].slots[0].target = 7; },
         "access policy window: slot 0: region 7 is out of range, the graph has 7"},
        {"AttributeAddend", [](Graph& g) { gemm(g).attributes[0].slots[0].addend = (1LL << 47) + 1; },
         "access policy window: slot 0: addend 140737488355329 of region 'w' is out of range, expected "
         "-140737488355328 to 140737488355328"},
        {"FunctionAttributeTwice", [](Graph& g) { gemm(g).function_attributes[1].id = 8; },
         "function attribute 8 is repeated or out of order"},
        {"FunctionAttributesTooMany",
         [](Graph& g) {
             for (std::uint32_t i = 15; i < 78; ++i) gemm(g).function_attributes.push_back({i, 1});
         },
         "65 function attributes are over the limit of 64"},
        {"PackedOfNone", [](Graph& g) { gemm(g).params.clear(); },
         "packed parameters must be one value, but there are 0, and the first is missing"},
        {"PackedOfTwo", [](Graph& g) { gemm(g).params.push_back({ParamKind::value, Bytes(4), 0, {}}); },
         "packed parameters must be one value, but there are 2, and the first is value"},
        {"PackedMemory", [](Graph& g) { gemm(g).params = {{ParamKind::memory, {}, 0, {region_slot(0)}}}; },
         "packed parameters must be one value, but there are 1, and the first is memory"},
        {"PackedLong", [](Graph& g) { gemm(g).params[0].value.resize(32'769); },
         "parameters take 32769 bytes, over the limit of 32768"},
        {"SharedBytes", [](Graph& g) { gemm(g).shared_bytes = ~0U; },
         "work-group memory takes 4294967295 bytes, over the limit of 1048576"},
        {"SharedAndLocalBytes",
         [](Graph& g) {
             gemm(g).packed = false;
             gemm(g).params.push_back({ParamKind::local, {}, 1 << 20, {}});
         },
         "work-group memory takes 1281024 bytes, over the limit of 1048576"},
        {"ValueFarBeforeRegion", [](Graph& g) { gemm(g).params[0].slots[0].addend = -(1LL << 47) - 1; },
         "parameter 0: slot 0: addend -140737488355329 of region 'kv' is out of range, expected -140737488355328 to "
         "140737488355328"},
        {"ValueFarPastRegion", [](Graph& g) { gemm(g).params[0].slots[1].addend = INT64_MAX; },
         "parameter 0: slot 1: addend 9223372036854775807 of region 'w' is out of range"},
    };
    return k_graphs;
}

const std::vector<Hostile>& hostile_boxes()
{
    static const std::vector<Hostile> k_graphs{
        {"CopyOfNoRows", [](Graph& g) { copy_of(g).rows = 0; },
         "copy (node 8): source has 0 rows and 2 slices, expected 1 or more"},
        {"CopyOfNoSlices", [](Graph& g) { copy_of(g).slices = 0; }, "source has 4 rows and 0 slices"},
        {"CopyPitchBelowRow", [](Graph& g) { copy_of(g).destination_pitch.row = 63; },
         "destination: pitch of 63 bytes is less than a row's 64"},
        {"CopyWithoutPitch", [](Graph& g) { copy_of(g).source_pitch = {}; },
         "source: pitch of 0 bytes is less than a row's 64"},
        {"CopySlicePitchBelowRows", [](Graph& g) { copy_of(g).source_pitch.slice = 192; },
         "source: slice pitch of 192 bytes, expected a multiple of 64 that holds 4 rows"},
        {"CopySlicePitchNoMultiple", [](Graph& g) { copy_of(g).source_pitch.slice = 257; },
         "source: slice pitch of 257 bytes, expected a multiple of 64"},
        {"CopyPitchHuge", [](Graph& g) { copy_of(g).source_pitch.row = 1ULL << 63; },
         "source: pitches of 9223372036854775808 and 256 bytes, expected at most 281474976710656"},
        {"CopyRowsPastRegion", [](Graph& g) { copy_of(g).source.addend = 3'585; },
         "source: 2 slices of 4 rows of 64 bytes at 3585 run past region 'staging' of 4096 bytes"},
        {"CopyRowsOverflow",
         [](Graph& g) { copy_of(g).slices = 1, copy_of(g).rows = 1ULL << 60, copy_of(g).source_pitch = {64, 0}; },
         "1152921504606846976 rows of 64 bytes at 0 run past region 'staging'"},
        {"CopySlicesOverflow", [](Graph& g) { copy_of(g).slices = (1ULL << 56) + 1; },
         "72057594037927937 slices of 4 rows of 64 bytes at 0 run past region 'staging'"},
        {"CopySpace", [](Graph& g) { copy_of(g).destination_space = static_cast<MemorySpace>(2); },
         "destination: memory space 2 is unknown"},
        {"CopyOfDeviceMemoryByTheHost", [](Graph& g) { copy_of(g).destination_space = MemorySpace::host; },
         "destination is host memory, its region 'kv' is device memory"},
        {"CopyOfRowsOntoItself",
         [](Graph& g) { copy_of(g) = {region_slot(4), region_slot(4, 32), 64, 4, 1, {128, 0}, {128, 0}}; },
         "source and destination overlap: 4 rows of 64 bytes at 0 and at 32 of one region"},
        {"CopyOfRowsOntoItsNextRow",
         [](Graph& g) { copy_of(g) = {region_slot(4, 0), region_slot(4, 96), 64, 4, 1, {128, 0}, {128, 0}}; },
         "source and destination overlap: 4 rows of 64 bytes at 0 and at 96 of one region"},
        {"CopyOfSlicesOntoItsNextSlice",
         [](Graph& g) { copy_of(g) = {region_slot(4, 1000), region_slot(4, 0), 64, 2, 2, {128, 1024}, {128, 1024}}; },
         "source and destination overlap: 2 slices of 2 rows of 64 bytes at 1000 and at 0"},
        {"CopyOfTwoPitchesThatMeet",
         [](Graph& g) { copy_of(g) = {region_slot(4), region_slot(4, 64), 64, 4, 1, {128, 0}, {256, 0}}; },
         "source and destination overlap"},
        {"FillOfNoRows", [](Graph& g) { fill_of(g).rows = 0; }, "fill (node 9): destination has 0 rows"},
        {"FillPitchBelowRow", [](Graph& g) { fill_of(g).pitch = 31; }, "pitch of 31 bytes is less than a row's 32"},
        {"FillRowsPastRegion", [](Graph& g) { fill_of(g).rows = 129; },
         "destination: 129 rows of 32 bytes at 0 run past region 'scratch' of 8192 bytes"},
        {"FillRowsOverflow", [](Graph& g) { fill_of(g).rows = ~0ULL; }, "rows of 32 bytes at 0 run past region"},
    };
    return k_graphs;
}

const std::vector<Hostile>& hostile_rest()
{
    static const std::vector<Hostile> k_graphs{
        {"EventOutOfRange", [](Graph& g) { std::get<EventRecordNode>(g.nodes[11]).event = 2; },
         "event record (node 11): event 2 is out of range, the graph has 2"},
        {"EventToWaitForOutOfRange", [](Graph& g) { std::get<EventWaitNode>(g.nodes[5]).event = ~0U; },
         "event wait (node 5): event 4294967295 is out of range"},
        {"EventTwice", [](Graph& g) { g.events[1] = "ready"; }, "event 1: name 'ready' is used twice"},
        {"EventWithoutName", [](Graph& g) { g.events[0].clear(); }, "event 0: name has 0 bytes"},
        {"EventNameUnprintable", [](Graph& g) { g.events[0] = "a\nb"; }, "event 0: name 'a\\x0ab' is not printable"},
        {"EventsTooMany",
         [](Graph& g) {
             for (int i = 0; i < 65'535; ++i) g.events.push_back("e" + std::to_string(i));
         },
         "65537 events are over the limit of 65536"},
        {"HostWithoutFunction", [](Graph& g) { host(g).function.clear(); },
         "host (node 10): host function name has 0 bytes, expected 1 to 255"},
        {"HostNameTooLong", [](Graph& g) { host(g).function.assign(256, 'f'); },
         "host function name has 256 bytes, expected 1 to 255"},
        {"HostNameUnprintable", [](Graph& g) { host(g).function = "a\tb"; },
         "host function name has unprintable bytes"},
        {"EdgePort", [](Graph& g) { programmatic(g).from_port = 3; }, "edge 7: 6 -> 7: ports 3 and 0, expected 0 to 2"},
        {"EdgeToPort", [](Graph& g) { programmatic(g).to_port = 255; }, "ports 1 and 255, expected 0 to 2"},
        {"EdgeType", [](Graph& g) { programmatic(g).type = 2; }, "type 2 is unknown, expected 0 to 1"},
        {"ProgrammaticFromNoPort", [](Graph& g) { programmatic(g).from_port = 0; },
         "a programmatic edge starts at port 1 or 2, this one at 0"},
        {"ProgrammaticFromCopy", [](Graph& g) { g.edges[10].data = {1, 0, 1}; },
         "edge 10: 8 -> 9: port 1 and type 1 start at a kernel, this is a copy node"},
        {"ProgrammaticToCopy", [](Graph& g) { g.edges[8].data.type = 1; },
         "edge 8: 6 -> 8: port 0 and type 1 end at a kernel, this is a copy node"},
        {"EdgeTwiceWithOtherData", [](Graph& g) { g.edges.insert(g.edges.begin() + 8, Edge{6, 7, {2, 0, 1}}); },
         "edge 8: 6 -> 7 is repeated or out of order"},
        {"VariableTwice", [](Graph& g) { variables(g)[1].name = variables(g)[0].name; },
         "image 1: variable '_ZN3llm4biasE' is repeated or out of order"},
        {"VariablesUnsorted", [](Graph& g) { std::swap(variables(g)[0], variables(g)[1]); },
         "image 1: variable '_ZN3llm4biasE' is repeated or out of order, variables are sorted by name"},
        {"VariableWithoutName", [](Graph& g) { variables(g)[0].name.clear(); }, "image 1: variable name has 0 bytes"},
        {"VariableNameUnprintable", [](Graph& g) { variables(g)[0].name = "\x1b[2J"; },
         "image 1: variable name has unprintable bytes"},
        {"VariableEmpty", [](Graph& g) { variables(g)[1].contents.clear(); },
         "image 1: variable 'lut' has 0 bytes, expected 1 to 67108864"},
        {"VariableSlotBeyondIt", [](Graph& g) { variables(g)[1].slots = {{SlotKind::region, 5, 0, 8, 0}}; },
         "has a bad slot of 8 bytes at 0"},
        {"VariableSlotOfAScalar",
         [](Graph& g) {
             variables(g)[1].contents.resize(8);
             variables(g)[1].slots = {{SlotKind::scalar, 0, 0, 8, 0}};
         },
         "has a bad slot of 8 bytes at 0"},
        {"VariableSlotInNoConstant",
         [](Graph& g) {
             variables(g)[1].contents.resize(8);
             variables(g)[1].slots = {{SlotKind::region, 0, 0, 8, 0}};
         },
         "holds an address 0 bytes into region 0, expected an address inside a constant"},
        {"VariableSlotBehindItsConstant",
         [](Graph& g) {
             variables(g)[1].contents.resize(8);
             variables(g)[1].slots = {{SlotKind::region, 5, 0, 8, 17}};
         },
         "holds an address 17 bytes into region 5, expected an address inside a constant"},
        {"VariableHuge", [](Graph& g) { variables(g)[1].contents.resize((64 << 20) + 1); },
         "image 1: variable 'lut' has 67108865 bytes"},
        {"VariablesTooMany", [](Graph& g) { variables(g).resize(4'097, {"v", Bytes(1)}); },
         "image 1: 4097 variables are over the limit of 4096"},
        {"RegionSpace", [](Graph& g) { g.regions[6].space = static_cast<MemorySpace>(2); },
         "region 6 'staging': memory space 2 is unknown"},
    };
    return k_graphs;
}

const std::vector<Hostile>& hostile_operations()
{
    static const std::vector<Hostile> k_graphs{
        {"NoOperation", [](Graph& g) { batch(g).clear(); },
         "memory operations (node 12): 0 operations, expected 1 to 256"},
        {"OperationsTooMany", [](Graph& g) { batch(g).resize(257, batch(g)[0]); }, "257 operations"},
        {"OperationKindZero", [](Graph& g) { batch(g)[0].kind = MemoryOperationKind{}; },
         "memory operations (node 12): operation 0: kind 0 is unknown"},
        {"OperationKind", [](Graph& g) { batch(g)[2].kind = static_cast<MemoryOperationKind>(7); },
         "operation 2: kind 7 is unknown"},
        {"WaitFlags", [](Graph& g) { batch(g)[0].flags = 4; }, "operation 0: flags 0x4 are not known for wait_32"},
        {"WriteFlags", [](Graph& g) { batch(g)[1].flags = 2; }, "operation 1: flags 0x2 are not known for write_64"},
        {"BarrierFlags", [](Graph& g) { batch(g)[2].flags = 2; }, "operation 2: flags 0x2 are not known for barrier"},
        {"FlushFlags", [](Graph& g) { batch(g)[2].kind = MemoryOperationKind::flush_remote_writes; },
         "flags 0x1 are not known for flush_remote_writes"},
        {"BarrierWithAddress", [](Graph& g) { batch(g)[2].address = region_slot(2); },
         "operation 2: a barrier has neither address nor value"},
        {"BarrierWithValue", [](Graph& g) { batch(g)[2].value = 1; }, "a barrier has neither address nor value"},
        {"ValueOfTooManyBytes", [](Graph& g) { batch(g)[0].value = 1ULL << 32; },
         "operation 0: value 0x100000000 does not fit 4 bytes"},
        {"WordOfNoRegion", [](Graph& g) { batch(g)[0].address.target = 7; },
         "operation 0: address: region 7 is out of range, the graph has 7"},
        {"WordOfAScalar", [](Graph& g) { batch(g)[0].address.kind = SlotKind::scalar; },
         "operation 0: address is not a region at offset 0"},
        {"WordBeforeItsRegion", [](Graph& g) { batch(g)[0].address.addend = -4; },
         "operation 0: address: addend -4 is outside region 'kv'"},
        {"WordPastItsRegion", [](Graph& g) { batch(g)[1].address.addend = 4096; },
         "operation 1: address: 8 bytes at 4096 run past region 'staging' of 4096 bytes"},
        {"WordHalfInItsRegion", [](Graph& g) { batch(g)[1].address.addend = 4092; },
         "operation 1: address: 8 bytes at 4092 run past region 'staging'"},
        {"WordMisaligned", [](Graph& g) { batch(g)[1].address.addend = 4; },
         "operation 1: addend 4 is not a multiple of the word's 8 bytes"},
        {"WriteToWeights", [](Graph& g) { batch(g)[1].address.target = 3, batch(g)[1].address.addend = 0; },
         "operation 1: destination 'w' is weights, which is read only"},
    };
    return k_graphs;
}

SemaphoresNode& waits(Graph& graph) { return std::get<SemaphoresNode>(graph.nodes[13]); }
SemaphoresNode& signals(Graph& graph) { return std::get<SemaphoresNode>(graph.nodes[14]); }

const std::vector<Hostile>& hostile_semaphores()
{
    static const std::vector<Hostile> k_graphs{
        {"NoSemaphore", [](Graph& g) { waits(g).uses.clear(); },
         "semaphore wait (node 13): 0 semaphores, expected 1 to 256"},
        {"SemaphoresTooMany", [](Graph& g) { waits(g).uses.resize(257, waits(g).uses[0]); }, "257 semaphores"},
        {"SemaphoreActionZero", [](Graph& g) { waits(g).action = SemaphoreAction{}; },
         "semaphores (node 13): action 0 is unknown"},
        {"SemaphoreAction", [](Graph& g) { waits(g).action = static_cast<SemaphoreAction>(3); },
         "semaphores (node 13): action 3 is unknown"},
        {"SemaphoreOutOfRange", [](Graph& g) { waits(g).uses[0].semaphore = 2; },
         "semaphore wait (node 13): semaphore 0: index 2 is out of range, the graph has 2"},
        {"SemaphoreWaitFlags", [](Graph& g) { waits(g).uses[0].flags = 1; },
         "semaphore 0: flags 0x1 are not known for a wait"},
        {"SemaphoreSignalFlags", [](Graph& g) { signals(g).uses[1].flags = 2; },
         "semaphore 1: flags 0x2 are not known for a signal"},
        {"SemaphoreWithAnAddress", [](Graph& g) { signals(g).uses[0].slot = region_slot(2); },
         "semaphore 0: its value is not a scalar at offset 0"},
        {"SemaphoreSlotOffset", [](Graph& g) { signals(g).uses[1].slot->offset = 4; },
         "semaphore 1: its value is not a scalar at offset 0"},
        {"SemaphoreSlotKind", [](Graph& g) { signals(g).uses[1].slot->kind = static_cast<SlotKind>(2); },
         "semaphore 1: its value is not a scalar at offset 0"},
        {"SemaphoreSlotWidth", [](Graph& g) { signals(g).uses[0].slot->width = 4; },
         "semaphore 0: slot width 4 does not match scalar 'step'"},
        {"SemaphoreSlotWideAsNothing", [](Graph& g) { signals(g).uses[0].slot->width = 16; },
         "semaphore 0: slot width 16 is neither 4 nor 8"},
        {"SemaphoreOfNoScalar", [](Graph& g) { signals(g).uses[0].slot->target = 3; },
         "semaphore 0: scalar 3 is out of range, the graph has 3"},
        {"SemaphoreOfAFloat",
         [](Graph& g) { signals(g).uses[1].slot->target = 1, signals(g).uses[1].slot->addend = 0; },
         "semaphore 1: its value is the scalar 'scale' of type f32, expected an integer"},
        {"SemaphoreWithoutName", [](Graph& g) { g.semaphores[0].clear(); }, "semaphore 0: name has 0 bytes"},
        {"SemaphoreTwice", [](Graph& g) { g.semaphores[1] = "frame"; }, "semaphore 1: name 'frame' is used twice"},
        {"SemaphoreUnprintable", [](Graph& g) { g.semaphores[0] = "\x1b[2J"; }, "semaphore 0: name '"},
        {"SemaphoreNamesTooMany", [](Graph& g) { g.semaphores.resize(65'537); },
         "65537 semaphores are over the limit of 65536"},
        {"SemaphoreWithAPort", [](Graph& g) { g.edges.back().data = {0, 1, 0}; },
         "port 1 and type 0 end at a kernel, this is a semaphore signal node"},
    };
    return k_graphs;
}

class HostileCudaGraph : public testing::TestWithParam<Hostile> {};

TEST_P(HostileCudaGraph, IsRefusedByName) { expect_refused_by_name(sample_cuda_entry(), GetParam()); }

std::string name_of(const testing::TestParamInfo<Hostile>& given) { return given.param.name; }

INSTANTIATE_TEST_SUITE_P(Launch, HostileCudaGraph, testing::ValuesIn(hostile_launches()), name_of);
INSTANTIATE_TEST_SUITE_P(Box, HostileCudaGraph, testing::ValuesIn(hostile_boxes()), name_of);
INSTANTIATE_TEST_SUITE_P(Operation, HostileCudaGraph, testing::ValuesIn(hostile_operations()), name_of);
INSTANTIATE_TEST_SUITE_P(Semaphore, HostileCudaGraph, testing::ValuesIn(hostile_semaphores()), name_of);
INSTANTIATE_TEST_SUITE_P(Rest, HostileCudaGraph, testing::ValuesIn(hostile_rest()), name_of);

TEST(HarmlessCudaGraph, AtEveryLimitIsAccepted)
{
    Graph graph = sample_cuda_graph();
    gemm(graph).shared_bytes = 1 << 20;
    gemm(graph).params[0].value.resize(32'764); // the limit of CUDA since Volta
    gemm(graph).params[0].slots[0].addend = -(1LL << 47);
    gemm(graph).params[0].slots[1].addend = 1LL << 47;
    gemm(graph).attributes[0].value.resize(64);
    copy_of(graph).source.addend = 3'584; // the copy's last byte is then the last byte of the region
    fill_of(graph).rows = 128;
    graph.edges[7].data = {2, 0, 1};
    host(graph).function.assign(255, 'f');
    EXPECT_TRUE(succeeded(validate(graph)));
}

TEST(HarmlessCudaGraph, MayCopyBetweenRowsThatLieSideBySide)
{
    Graph graph = sample_cuda_graph();
    copy_of(graph) = {region_slot(4), region_slot(4, 64), 64, 4, 1, {128, 0}, {128, 0}}; // copies left to right half
    EXPECT_TRUE(succeeded(validate(graph)));
    copy_of(graph) = {region_slot(4, 64), region_slot(4), 64, 4, 1, {128, 0}, {128, 0}};
    EXPECT_TRUE(succeeded(validate(graph)));
    copy_of(graph) = {region_slot(4), region_slot(4, 512), 64, 4, 1, {128, 0},
                      {256, 0}}; // the destination starts after the source's last row
    EXPECT_TRUE(succeeded(validate(graph)));
    copy_of(graph) = {region_slot(4), region_slot(4, 256), 64, 2, 2,
                      {128, 1024},    {128, 1024}}; // copies between different rows of the two slices
    EXPECT_TRUE(succeeded(validate(graph)));
}

TEST(HarmlessCudaGraph, MayWaitForWordsThatItMustNotWrite)
{
    Graph graph = sample_cuda_graph();
    batch(graph)[0].address = region_slot(3, 4092);
    batch(graph)[0].flags = 3 | 1U << 30;
    batch(graph)[0].value = 0xFFFF'FFFF;
    batch(graph).resize(256, batch(graph)[0]);
    EXPECT_TRUE(succeeded(validate(graph)));
}

TEST(HarmlessCudaGraph, MayNameThePitchOfOneRow)
{
    Graph graph = sample_cuda_graph();
    fill_of(graph).rows = 1;
    EXPECT_TRUE(succeeded(validate(graph)));
    fill_of(graph).pitch = 0;
    EXPECT_TRUE(succeeded(validate(graph)));
}

TEST(HarmlessCudaGraph, MayTreatPinnedHostMemoryAsTheDeviceDoes)
{
    Graph graph = sample_cuda_graph();
    copy_of(graph).source_space = MemorySpace::device;
    EXPECT_TRUE(succeeded(validate(graph)));
}

} // namespace
} // namespace warmgraph::cachefmt::test::hostile_cuda_test
