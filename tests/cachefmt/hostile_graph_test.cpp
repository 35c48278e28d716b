// Promise F4: entries with matching digests whose graphs make no sense. Each is refused with a text that names the
// fault.
#include "hostile.hpp"

namespace warmgraph::cachefmt::test::hostile_graph_test {
namespace {

KernelNode& rope(Graph& graph) { return std::get<KernelNode>(graph.nodes[1]); }
FillNode& fill(Graph& graph) { return std::get<FillNode>(graph.nodes[0]); }
CopyNode& copy(Graph& graph) { return std::get<CopyNode>(graph.nodes[2]); }

const std::vector<Hostile>& hostile_graphs()
{
    static const std::vector<Hostile> k_graphs{
        // Faults in edges
        {"Cycle", [](Graph& g) { g.edges.push_back({4, 0}); },
         "edge 5: 4 -> 0 does not go from a lower to a higher node"},
        {"SelfEdge", [](Graph& g) { g.edges[0] = {1, 1}; }, "edge 0: 1 -> 1 does not go from a lower to a higher node"},
        {"EdgeOutOfRange", [](Graph& g) { g.edges.push_back({3, 5}); },
         "edge 5: 3 -> 5 is out of range, the graph has 5 nodes"},
        {"EdgeRepeated", [](Graph& g) { g.edges.push_back(g.edges.back()); },
         "edge 5: 3 -> 4 is repeated or out of order"},
        {"EdgesUnsorted", [](Graph& g) { std::swap(g.edges[0], g.edges[1]); },
         "edge 1: 0 -> 1 is repeated or out of order"},
        // Faults in regions
        {"RegionTwice", [](Graph& g) { g.regions[1].name = "token"; }, "region 1 'token': name 'token' is used twice"},
        {"RegionWithoutName", [](Graph& g) { g.regions[0].name = ""; }, "name has 0 bytes"},
        {"RegionNameTooLong", [](Graph& g) { g.regions[0].name = std::string(257, 'x'); },
         "name has 257 bytes, expected 1 to 256"},
        {"RegionNameDrivesTerminal", [](Graph& g) { g.regions[0].name = "a\x1b[2J"; },
         "name 'a\\x1b[2J' is not printable"},
        {"RegionNameHoldsNul", [](Graph& g) { g.regions[0].name = std::string("a\0b", 3); },
         "name 'a\\x00b' is not printable"},
        {"RegionKind", [](Graph& g) { g.regions[0].kind = static_cast<RegionKind>(6); },
         "region 0 'token': kind 6 is unknown"},
        {"RegionAlignmentZero", [](Graph& g) { g.regions[0].alignment = 0; }, "alignment 0 is not a power of two"},
        {"RegionAlignmentOdd", [](Graph& g) { g.regions[0].alignment = 48; }, "alignment 48 is not a power of two"},
        {"RegionAlignmentHuge", [](Graph& g) { g.regions[0].alignment = 8192; },
         "alignment 8192 is not a power of two up to 4096"},
        {"RegionHuge", [](Graph& g) { g.regions[2].size = ~0ULL; },
         "region 2 'kv': 18446744073709551615 bytes are over the limit"},
        {"ArenaHuge", [](Graph& g) { g.regions[4].size = 1ULL << 41; },
         "arenas take 2199023255552 bytes, over the limit"},
        {"ArenasHugeTogether",
         [](Graph& g) {
             g.regions[4].size = 1ULL << 39;
             for (int i = 0; i < 2; ++i)
                 g.regions.push_back({"arena" + std::to_string(i), RegionKind::arena, 1ULL << 39, 1, {}});
         },
         "arenas take 1649267441664 bytes, over the limit"},
        {"ConstantTwice", [](Graph& g) { g.regions[5].digest = sha256(Bytes(16)); },
         "only a constant without contents may store them in another file, but this is constant of 16 bytes with 16"},
        {"InputElsewhere", [](Graph& g) { g.regions[0].digest = sha256(Bytes(16)); },
         "only a constant without contents may store them in another file, but this is input"},
        {"ConstantShort", [](Graph& g) { g.regions[5].size = 17; }, "a constant of 17 bytes has contents of 16"},
        {"ContentsOfInput", [](Graph& g) { g.regions[0].contents = Bytes(4); },
         "only a constant has contents, this is input"},
        {"InsideAnInput", [](Graph& g) { g.regions[5].inside = 0; },
         "region 5 'table': only a constant lies in another region, an arena; this is constant"},
        {"InsideItself", [](Graph& g) { g.regions[5].inside = 5; },
         "region 5 'table': only a constant lies in another region, an arena; this is constant"},
        {"InsideOutOfRange", [](Graph& g) { g.regions[5].inside = 6; },
         "region 5 'table': only a constant lies in another region, an arena; this is constant"},
        {"InputInsideAnArena", [](Graph& g) { g.regions[0].inside = 4; },
         "region 0 'token': only a constant lies in another region, an arena; this is input"},
        {"OffsetInsideNothing", [](Graph& g) { g.regions[5].inside_offset = 8; },
         "region 5 'table': only a constant lies in another region, an arena; this is constant"},
        {"InsidePastTheArena", [](Graph& g) { g.regions[5].inside = 4, g.regions[5].inside_offset = 8177; },
         "16 bytes at 8177 lie outside of arena 'scratch' of 8192 bytes"},
        {"InsideFarPastTheArena", [](Graph& g) { g.regions[5].inside = 4, g.regions[5].inside_offset = ~0ULL - 7; },
         "lie outside of arena 'scratch' of 8192 bytes"},
        {"RegionsTooMany",
         [](Graph& g) {
             for (int i = 0; i < 65'536; ++i)
                 g.regions.push_back({"r" + std::to_string(i), RegionKind::input, 1, 1, {}});
         },
         "65542 regions are over the limit of 65536"},
        // Faults in scalars
        {"ScalarNamedAsRegion", [](Graph& g) { g.scalars[0].name = "kv"; }, "scalar 0: name 'kv' is used twice"},
        {"ScalarType", [](Graph& g) { g.scalars[0].type = static_cast<DType>(13); },
         "scalar 0 'position': type 13 is unknown"},
        {"ScalarsTooMany",
         [](Graph& g) {
             for (int i = 0; i < 4'096; ++i) g.scalars.push_back({"s" + std::to_string(i), DType::i32});
         },
         "4099 scalars are over the limit of 4096"},
        // Faults in images
        {"ImageMissing", [](Graph& g) { rope(g).image = 2; },
         "kernel rope (node 1): image 2 is out of range, the graph has 2"},
        {"ImageWithoutDigest", [](Graph& g) { g.images[0].digest = {}; }, "image 0 has no digest"},
        {"ImageEmpty", [](Graph& g) { g.images[0].size = 0; }, "image 0 has 0 bytes"},
        {"ImageHuge", [](Graph& g) { g.images[1].size = 1ULL << 40; }, "image 1 has 1099511627776 bytes"},
        {"ImageLabelTooLong", [](Graph& g) { g.images[1].label.assign(5000, 'x'); }, "image 1: label has 5000 bytes"},
        // Faults in launches
        {"KernelWithoutName", [](Graph& g) { rope(g).kernel = ""; }, "kernel name has 0 bytes"},
        {"KernelNameTooLong", [](Graph& g) { rope(g).kernel.assign(65537, 'k'); },
         "kernel name has 65537 bytes, expected 1 to 65536"},
        {"KernelNameUnprintable", [](Graph& g) { rope(g).kernel = "ro\npe"; },
         "kernel ro\\x0ape (node 1): kernel name has unprintable bytes"},
        {"GridZero", [](Graph& g) { rope(g).grid = {4, 0, 1}; }, "grid 4,0,1 has a zero or more than"},
        {"GridHuge", [](Graph& g) { rope(g).grid = {~0U, ~0U, ~0U}; }, "grid 4294967295,4294967295,4294967295 has"},
        {"BlockZero", [](Graph& g) { rope(g).block = {0, 1, 1}; }, "block 0,1,1 has a zero or more than"},
        {"BlockHuge", [](Graph& g) { rope(g).block = {1024, 1024, 2}; },
         "block 1024,1024,2 has a zero or more than 1048576"},
        {"BlockOverflows", [](Graph& g) { rope(g).block = {1U << 31, 1U << 31, 4}; },
         "block 2147483648,2147483648,4 has"},
        {"ParamsTooMany", [](Graph& g) { rope(g).params.resize(4097, {ParamKind::value, Bytes(1), 0, {}}); },
         "4097 parameters are over the limit of 4096"},
        {"ParamBytesTooMany", [](Graph& g) { rope(g).params[4].value.resize(32'768); },
         "bytes, over the limit of 32768"},
        {"NodesTooMany", [](Graph& g) { g.nodes.resize(200'001); }, "200001 nodes are over the limit of 200000"},
        // Faults in parameters
        {"ParamKind", [](Graph& g) { rope(g).params[0].kind = static_cast<ParamKind>(3); },
         "parameter 0: kind 3 is unknown"},
        {"ValueEmpty", [](Graph& g) { rope(g).params[4].value.clear(); },
         "parameter 4: a value parameter has no bytes"},
        {"ValueAsksForLocalMemory", [](Graph& g) { rope(g).params[4].local_size = 8; },
         "a value parameter asks for 8 bytes of work-group memory"},
        {"LocalZero", [](Graph& g) { rope(g).params[2].local_size = 0; }, "work-group memory of 0 bytes"},
        {"LocalHuge", [](Graph& g) { rope(g).params[2].local_size = (1 << 20) + 1; },
         "work-group memory of 1048577 bytes, expected 1 to 1048576"},
        {"LocalHugeTogether", [](Graph& g) { rope(g).params.push_back({ParamKind::local, {}, 1 << 20, {}}); },
         "work-group memory takes 1048704 bytes, over the limit"},
        {"LocalWithBytes", [](Graph& g) { rope(g).params[2].value = Bytes(4); },
         "work-group memory has no bytes and no slots"},
        {"LocalWithSlot", [](Graph& g) { rope(g).params[2].slots = {region_slot(0)}; },
         "work-group memory has no bytes and no slots"},
        {"MemoryWithBytes", [](Graph& g) { rope(g).params[0].value = Bytes(8); }, "a memory parameter has no bytes"},
        {"MemoryWithoutSlot", [](Graph& g) { rope(g).params[0].slots.clear(); },
         "a memory parameter has one region slot, this one has 0 slots"},
        {"MemoryWithTwoSlots", [](Graph& g) { rope(g).params[0].slots.push_back(region_slot(0)); },
         "this one has 2 slots"},
        {"MemoryFromScalar", [](Graph& g) { rope(g).params[0].slots = {{SlotKind::scalar, 2, 0, 8, 0}}; },
         "a memory parameter's slot is a region at offset 0"},
        {"MemoryAtOffset", [](Graph& g) { rope(g).params[0].slots[0].offset = 8; },
         "a memory parameter's slot is a region at offset 0"},
        // Faults in slots
        {"SlotKind", [](Graph& g) { rope(g).params[1].slots[0].kind = static_cast<SlotKind>(2); },
         "parameter 1: slot 0: slot kind 2 is unknown"},
        {"SlotRegionOutOfRange", [](Graph& g) { rope(g).params[0].slots[0].target = 6; },
         "region 6 is out of range, the graph has 6"},
        {"SlotScalarOutOfRange", [](Graph& g) { rope(g).params[1].slots[0].target = 3; },
         "scalar 3 is out of range, the graph has 3"},
        {"SlotPastParameter", [](Graph& g) { rope(g).params[3].slots[2].offset = 17; },
         "slot 2: bytes 17 to 25 are outside the parameter's 24"},
        {"SlotFarPastParameter", [](Graph& g) { rope(g).params[3].slots[2].offset = ~0U; },
         "are outside the parameter's 24"},
        {"SlotsOverlap", [](Graph& g) { rope(g).params[3].slots[1].offset = 7; },
         "slot 1: offset 7 overlaps the slot before it, or is before it"},
        {"SlotsUnsorted", [](Graph& g) { std::swap(rope(g).params[3].slots[0], rope(g).params[3].slots[2]); },
         "slot 1: offset 8 overlaps the slot before it, or is before it"},
        {"SlotWidth", [](Graph& g) { rope(g).params[1].slots[0].width = 3; }, "slot width 3 is neither 4 nor 8"},
        {"SlotWidthZero", [](Graph& g) { rope(g).params[1].slots[0].width = 0; }, "slot width 0 is neither 4 nor 8"},
        {"AddressInFourBytes", [](Graph& g) { rope(g).params[3].slots[0].width = 4; },
         "an address takes 8 bytes, the slot has 4"},
        {"ScalarWidth", [](Graph& g) { rope(g).params[3].slots[2].width = 4; },
         "slot width 4 does not match scalar 'step' of type u64"},
        {"AddendBeforeRegion", [](Graph& g) { rope(g).params[0].slots[0].addend = -1; },
         "addend -1 is outside region 'kv' of 65536 bytes"},
        {"AddendPastRegion", [](Graph& g) { rope(g).params[0].slots[0].addend = 65'537; },
         "addend 65537 is outside region 'kv' of 65536 bytes"},
        {"AddendOfFloat", [](Graph& g) { rope(g).params[3].slots[1].addend = 1; },
         "scalar 'scale' is a f32, its addend must be 0 and is 1"},
        {"AddendTooWide", [](Graph& g) { rope(g).params[1].slots[0].addend = 1LL << 32; },
         "addend 4294967296 does not fit scalar 'position' of 4 bytes"},
        // Faults in copies and fills
        {"CopyFromScalar", [](Graph& g) { copy(g).source.kind = SlotKind::scalar; },
         "copy (node 2): source is not a region"},
        {"CopyAtOffset", [](Graph& g) { copy(g).source.offset = 4; },
         "copy (node 2): source is not a region at offset 0"},
        {"CopyFromNowhere", [](Graph& g) { copy(g).source.target = 77; },
         "copy (node 2): source: region 77 is out of range"},
        {"CopyOfNothing", [](Graph& g) { copy(g).size = 0; }, "copy (node 2): source has 0 bytes"},
        {"CopyPastSource", [](Graph& g) { copy(g).source.addend = 7169; },
         "source: 1024 bytes at 7169 run past region 'scratch' of 8192 bytes"},
        {"CopyPastDestination", [](Graph& g) { copy(g).size = 1025; },
         "destination: 1025 bytes at 0 run past region 'logits' of 1024 bytes"},
        {"CopyOverflows", [](Graph& g) { copy(g).size = ~0ULL - 511; },
         "source: 18446744073709551104 bytes at 512 run past"},
        {"CopyOntoItself", [](Graph& g) { copy(g).destination = region_slot(4, 1535); },
         "source and destination overlap"},
        {"CopyIntoWeights", [](Graph& g) { copy(g).destination = region_slot(3); },
         "destination 'w' is weights, which is read only"},
        {"FillOfConstant", [](Graph& g) { fill(g) = {region_slot(5), Bytes(4), 16}; },
         "destination 'table' is constant, which is read only"},
        {"FillPastRegion", [](Graph& g) { fill(g).size = 8196; },
         "fill (node 0): destination: 8196 bytes at 0 run past region 'scratch' of 8192"},
        {"FillPattern", [](Graph& g) { fill(g).pattern.resize(3); }, "pattern has 3 bytes, expected 1, 2, 4, 8 or 16"},
        {"FillPatternEmpty", [](Graph& g) { fill(g).pattern.clear(); }, "pattern has 0 bytes"},
        {"FillPatternLong", [](Graph& g) { fill(g).pattern.resize(32); }, "pattern has 32 bytes"},
        {"FillNoMultiple", [](Graph& g) { fill(g).size = 255; }, "255 bytes are not a multiple of the pattern's 4"},
    };
    return k_graphs;
}

class HostileGraph : public testing::TestWithParam<Hostile> {};

TEST_P(HostileGraph, IsRefusedByName) { expect_refused_by_name(sample_entry(), GetParam()); }

INSTANTIATE_TEST_SUITE_P(Each, HostileGraph, testing::ValuesIn(hostile_graphs()),
                         [](const auto& given) { return std::string{given.param.name}; });

TEST(HarmlessGraph, AtEveryLimitIsAccepted)
{
    Graph graph = sample_graph();
    rope(graph).params[0].slots[0].addend = 65'536; // points one byte past the end of the region
    rope(graph).block = {1024, 1024, 1};
    rope(graph).grid = {1U << 20, 1U << 20, 1};
    rope(graph).params[2].local_size = 1 << 20;
    copy(graph).source.addend = 7168;
    graph.regions[0].alignment = 4096;
    graph.regions[5].inside = 4;
    graph.regions[5].inside_offset = 8176; // the region then reaches up to the end of the arena
    EXPECT_TRUE(succeeded(validate(graph)));
    copy(graph) = {region_slot(4, 0), region_slot(4, 1024), 1024}; // source and destination touch, but do not overlap
    EXPECT_TRUE(succeeded(validate(graph)));
    EXPECT_TRUE(succeeded(validate(Graph{})));
}

TEST(HarmlessGraph, IsRefusedWhenItsMemoryIsOverTheLimit)
{
    EXPECT_TRUE(failed_with(validate(sample_graph(), {.payload_bytes = 500}), ErrorCode::corrupt,
                            "bytes of memory, over the limit of 500"));
}

} // namespace
} // namespace warmgraph::cachefmt::test::hostile_graph_test
