// Promise F4: graphs of an attacker who can seal entries. The decoder may refuse a graph. Otherwise it is replayed on
// the fake driver: the replay must end with a typed error, or launch work that writes only the caller's memory.
#include <random>

#include "expect_error.hpp"
#include "flat_writer.hpp"
#include "random_graph.hpp"
#include "sample_entry.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay::hostile_replay_test {
namespace {

using cachefmt::CopyNode;
using cachefmt::FillNode;
using cachefmt::Graph;
using cachefmt::KernelNode;
using cachefmt::ParamKind;
using cachefmt::RegionKind;
using cachefmt::Slot;
using cachefmt::SlotKind;

constexpr std::uint64_t k_bytes = 256;
constexpr std::byte k_untouched{0x5A};

Slot region(std::uint32_t target, std::int64_t addend = 0) { return {SlotKind::region, target, 0, 8, addend}; }
cachefmt::Param memory(std::uint32_t target) { return {ParamKind::memory, {}, 0, {region(target)}}; }
cachefmt::Param number(std::int32_t value, std::vector<Slot> slots = {})
{
    cachefmt::Param param;
    append(param.value, value);
    param.slots = std::move(slots);
    return param;
}

class HostileReplay : public testing::Test {
protected:
    HostileReplay()
    {
        auto module = device->compiler().compile(
            "kernel add_scalar(memory x, value amount, value n)\nkernel copy(memory y, memory x, value n)\n", "");
        image = *(*module)->image();
        sample.regions = {{"x", RegionKind::input, k_bytes, 64, {}},
                          {"y", RegionKind::output, k_bytes, 64, {}},
                          {"s", RegionKind::state, k_bytes, 64, {}},
                          {"scratch", RegionKind::arena, k_bytes, 64, {}},
                          {"table", RegionKind::constant, 16, 16, Bytes(16, std::byte{7})}};
        sample.scalars = {{"amount", DType::i32}, {"count", DType::i64}};
        sample.images = {{sha256(image), image.size(), {}, "small"}};
        sample.nodes = {FillNode{region(3), Bytes(4, std::byte{1}), k_bytes},
                        CopyNode{region(0), region(3, 64), 64},
                        KernelNode{0,
                                   "add_scalar",
                                   {2, 1, 1},
                                   {8, 1, 1},
                                   {memory(3), number(0, {{SlotKind::scalar, 0, 0, 4, 1}}), number(16)}},
                        KernelNode{0, "copy", {1, 1, 1}, {16, 1, 1}, {memory(2), memory(3), number(16)}},
                        cachefmt::EmptyNode{},
                        CopyNode{region(4), region(1, 16), 16},
                        cachefmt::EmptyNode{},
                        CopyNode{region(2), region(1, 64), 128}};
        sample.edges = {{0, 1}, {1, 2}, {2, 3}, {3, 4}, {3, 5}, {4, 6}, {5, 6}, {6, 7}};
        for (const auto& declared : sample.regions)
            if (declared.kind == RegionKind::input || declared.kind == RegionKind::output ||
                declared.kind == RegionKind::state)
                callers.push_back(filled());
        for (MemoryRef& canary : canaries) canary = filled();
    }
    MemoryRef filled()
    {
        const MemoryRef made = *device->allocate(k_bytes);
        EXPECT_TRUE(device->upload(made.address, Bytes(k_bytes, k_untouched)));
        return made;
    }

    /// Seals a payload as a hostile writer would, with the counts of `graph` in the header, and decodes the file.
    Result<cachefmt::Entry> decoded(const Graph& graph, ByteView payload) const
    {
        cachefmt::Entry entry = cachefmt::test::sample_entry();
        entry.graph = graph;
        cachefmt::test::settle(entry);
        const Bytes bytes =
            cachefmt::test::assemble(entry.header.key, cachefmt::write_header(entry.header), payload, payload.size());
        return cachefmt::decode(bytes, entry.header.key);
    }

    /// Memory for the caller's own regions. Its sizes do not depend on the graph, so some ranges are too small.
    Bindings bindings_of(const Graph& graph) const
    {
        Bindings bindings;
        for (std::size_t i = 0; i < graph.regions.size(); ++i) bindings.regions.push_back(callers[i % callers.size()]);
        bindings.scalars.assign(graph.scalars.size(), 3);
        return bindings;
    }

    /// Replays the graph. Returns the error, or "" when the graph ran. REQUIRES: the decoder accepted the graph.
    std::string replay(Graph graph)
    {
        const Bindings bindings = bindings_of(graph);
        ModuleCache modules;
        Phases phases;
        auto executable = Executable::restore(
            device, std::move(graph), modules,
            [this](const cachefmt::ImageRef& wanted) -> Result<Bytes> {
                if (wanted.digest == sha256(image) && wanted.size == image.size()) return image;
                return fail(ErrorCode::not_found, "no such image");
            },
            bindings, phases);
        std::string why;
        if (executable) {
            const auto launched = (*executable)->launch(*stream, bindings);
            if (!launched) why = "launch: " + launched.error().message;
        } else {
            why = "restore: " + executable.error().message;
            EXPECT_NE(executable.error().code, ErrorCode::internal) << why;
        }
        EXPECT_TRUE(stream->synchronize());
        for (const MemoryRef& canary : canaries) {
            Bytes now(k_bytes);
            EXPECT_TRUE(device->download(now, canary.address));
            EXPECT_EQ(now, Bytes(k_bytes, k_untouched)) << "memory of somebody else was written";
        }
        return why;
    }

    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend({.memory = 4 << 20});
    std::shared_ptr<backends::Device> device = *fake->open("0");
    std::unique_ptr<backends::Stream> stream = *device->create_stream();
    Bytes image;
    Graph sample;
    std::vector<MemoryRef> callers;
    std::array<MemoryRef, 3> canaries;
};

struct Hostile {
    const char* name;
    std::function<void(Graph&)> spoil;
};

KernelNode& kernel(Graph& graph) { return std::get<KernelNode>(graph.nodes[2]); }
CopyNode& copy(Graph& graph) { return std::get<CopyNode>(graph.nodes[1]); }
FillNode& fill(Graph& graph) { return std::get<FillNode>(graph.nodes[0]); }

const std::vector<Hostile>& hostiles()
{
    static const std::vector<Hostile> list{
        {"cycle", [](Graph& g) { g.edges.push_back({7, 0}); }},
        {"edge to itself", [](Graph& g) { g.edges[0] = {1, 1}; }},
        {"edge twice", [](Graph& g) { g.edges.push_back(g.edges.back()); }},
        {"edge past the nodes", [](Graph& g) { g.edges.push_back({7, 8}); }},
        {"edge from far", [](Graph& g) { g.edges.back() = {~0U, ~0U}; }},
        {"no edges", [](Graph& g) { g.edges.clear(); }},
        {"no nodes", [](Graph& g) { g.nodes.clear(), g.edges.clear(); }},
        {"nothing", [](Graph& g) { g = {}; }},
        {"unknown port", [](Graph& g) { g.edges[0].data.from_port = 9; }},
        {"programmatic copy", [](Graph& g) { g.edges[0].data = {1, 0, 1}; }},
        {"image past the end", [](Graph& g) { kernel(g).image = 1; }},
        {"no images", [](Graph& g) { g.images.clear(); }},
        {"image of no size", [](Graph& g) { g.images[0].size = 0; }},
        {"image of another size", [](Graph& g) { g.images[0].size += 1; }},
        {"image that is missing", [](Graph& g) { g.images[0].digest.bytes[0] ^= std::byte{1}; }},
        {"image without digest", [](Graph& g) { g.images[0].digest = {}; }},
        {"image twice", [](Graph& g) { g.images.push_back(g.images[0]); }},
        {"variable that is none", [](Graph& g) { g.images[0].variables = {{"v", Bytes(8), {}}}; }},
        {"variable without contents", [](Graph& g) { g.images[0].variables = {{"v", {}, {}}}; }},
        {"variable with a hostile slot", [](Graph& g) { g.images[0].variables = {{"v", Bytes(8), {region(0)}}}; }},
        {"kernel without a name", [](Graph& g) { kernel(g).kernel.clear(); }},
        {"kernel of another name", [](Graph& g) { kernel(g).kernel = "noise"; }},
        {"kernel with a name of 64 KiB", [](Graph& g) { kernel(g).kernel.assign(65'536, 'k'); }},
        {"kernel name with control characters", [](Graph& g) { kernel(g).kernel = "k\n"; }},
        {"grid of zero", [](Graph& g) { kernel(g).grid[1] = 0; }},
        {"grid that is huge", [](Graph& g) { kernel(g).grid = {~0U, ~0U, ~0U}; }},
        {"grid of 2^31", [](Graph& g) { kernel(g).grid[0] = 1U << 31; }},
        {"block of zero", [](Graph& g) { kernel(g).block[2] = 0; }},
        {"block that is huge", [](Graph& g) { kernel(g).block = {~0U, 1, 1}; }},
        {"block of 2^20", [](Graph& g) { kernel(g).block[0] = 1U << 20; }},
        {"shared memory over the limit", [](Graph& g) { kernel(g).shared_bytes = ~0U; }},
        {"shared memory of 1 MiB", [](Graph& g) { kernel(g).shared_bytes = 1U << 20; }},
        {"local memory of 2^63", [](Graph& g) { kernel(g).params[0] = {ParamKind::local, {}, 1ULL << 63, {}}; }},
        {"no parameters", [](Graph& g) { kernel(g).params.clear(); }},
        {"a parameter too few", [](Graph& g) { kernel(g).params.pop_back(); }},
        {"a parameter too many", [](Graph& g) { kernel(g).params.push_back(number(1)); }},
        {"a parameter of 1 byte", [](Graph& g) { kernel(g).params[2].value.resize(1); }},
        {"a parameter of 30 KB", [](Graph& g) { kernel(g).params[2].value.resize(30'000); }},
        {"a parameter of no bytes", [](Graph& g) { kernel(g).params[2].value.clear(); }},
        {"a number for memory", [](Graph& g) { kernel(g).params[0] = number(7); }},
        {"memory for a number", [](Graph& g) { kernel(g).params[2] = memory(0); }},
        {"packed parameters", [](Graph& g) { kernel(g).packed = true; }},
        {"packed into 1 byte",
         [](Graph& g) {
             kernel(g).packed = true, kernel(g).params = {number(0)}, kernel(g).params[0].value.resize(1);
         }},
        {"slot past the parameter", [](Graph& g) { kernel(g).params[1].slots[0].offset = 4; }},
        {"slot that wraps around", [](Graph& g) { kernel(g).params[1].slots[0].offset = ~0U; }},
        {"slot of 0 bytes", [](Graph& g) { kernel(g).params[1].slots[0].width = 0; }},
        {"slot of 255 bytes", [](Graph& g) { kernel(g).params[1].slots[0].width = 255; }},
        {"slot of no scalar", [](Graph& g) { kernel(g).params[1].slots[0].target = 2; }},
        {"slot of an unknown kind", [](Graph& g) { kernel(g).params[1].slots[0].kind = static_cast<SlotKind>(9); }},
        {"slots over each other", [](Graph& g) { kernel(g).params[1].slots.push_back(kernel(g).params[1].slots[0]); }},
        {"memory of no region", [](Graph& g) { kernel(g).params[0] = memory(5); }},
        {"memory before its region", [](Graph& g) { kernel(g).params[0].slots[0].addend = -1; }},
        {"memory behind its region", [](Graph& g) { kernel(g).params[0].slots[0].addend = k_bytes + 1; }},
        {"memory at its region's end", [](Graph& g) { kernel(g).params[0].slots[0].addend = k_bytes; }},
        {"a count beyond the memory",
         [](Graph& g) { kernel(g).params[2] = number(1 << 20), kernel(g).grid[0] = 1U << 16; }},
        {"a negative count", [](Graph& g) { kernel(g).params[2] = number(-1); }},
        {"attribute without a value", [](Graph& g) { kernel(g).attributes = {{1, {}, {}}}; }},
        {"attribute of an unknown number", [](Graph& g) { kernel(g).attributes = {{~0U, Bytes(4), {}}}; }},
        {"function attribute of an unknown number", [](Graph& g) { kernel(g).function_attributes = {{~0U, -1}}; }},
        {"copy behind its region", [](Graph& g) { copy(g).size = k_bytes + 1; }},
        {"copy of 2^63 bytes", [](Graph& g) { copy(g).size = 1ULL << 63; }},
        {"copy of nothing", [](Graph& g) { copy(g).size = 0; }},
        {"copy of 2^63 rows", [](Graph& g) { copy(g).rows = 1ULL << 63, copy(g).source_pitch.row = 64; }},
        {"copy whose pitch wraps around", [](Graph& g) { copy(g).rows = 3, copy(g).source_pitch.row = 1ULL << 63; }},
        {"copy into the weights", [](Graph& g) { g.regions[3].kind = RegionKind::weights; }},
        {"copy into a constant", [](Graph& g) { copy(g).destination = region(4); }},
        {"copy onto itself", [](Graph& g) { copy(g).destination = region(0, 8); }},
        {"copy of a scalar", [](Graph& g) { copy(g).source = {SlotKind::scalar, 0, 0, 8, 0}; }},
        {"copy from the host's side", [](Graph& g) { copy(g).source_space = cachefmt::MemorySpace::host; }},
        {"fill behind its region", [](Graph& g) { fill(g).size = k_bytes + 4; }},
        {"fill without a pattern", [](Graph& g) { fill(g).pattern.clear(); }},
        {"fill with a pattern of 3", [](Graph& g) { fill(g).pattern.resize(3); }},
        {"fill of half a pattern", [](Graph& g) { fill(g).size = 6; }},
        {"region of 2^63 bytes", [](Graph& g) { g.regions[0].size = 1ULL << 63; }},
        {"region larger than what is bound", [](Graph& g) { g.regions[0].size = 1ULL << 40; }},
        {"region of nothing", [](Graph& g) { g.regions[0].size = 0; }},
        {"region aligned to 3", [](Graph& g) { g.regions[0].alignment = 3; }},
        {"region aligned to 4,096", [](Graph& g) { g.regions[0].alignment = 4'096; }},
        {"region of an unknown kind", [](Graph& g) { g.regions[0].kind = static_cast<RegionKind>(9); }},
        {"region of an unknown space", [](Graph& g) { g.regions[0].space = static_cast<cachefmt::MemorySpace>(2); }},
        {"region of host memory", [](Graph& g) { g.regions[0].space = cachefmt::MemorySpace::host; }},
        {"region twice", [](Graph& g) { g.regions[1].name = g.regions[0].name; }},
        {"region without a name", [](Graph& g) { g.regions[0].name.clear(); }},
        {"arena of 2^40 bytes", [](Graph& g) { g.regions[3].size = 1ULL << 40; }},
        {"arenas over the limit", [](Graph& g) { g.regions[3].size = (1ULL << 40) + 1; }},
        {"arena over the device's memory", [](Graph& g) { g.regions[3].size = 8 << 20; }},
        {"constant with too few contents", [](Graph& g) { g.regions[4].contents.pop_back(); }},
        {"constant with none", [](Graph& g) { g.regions[4].contents.clear(); }},
        {"constant elsewhere that is missing",
         [](Graph& g) { g.regions[4].contents.clear(), g.regions[4].digest.bytes[0] = std::byte{1}; }},
        {"constant elsewhere of 4 GiB",
         [](Graph& g) {
             g.regions[4] = {"table", RegionKind::constant, 4ULL << 30, 16, {}},
             g.regions[4].digest.bytes[0] = std::byte{1};
         }},
        {"constant in no arena", [](Graph& g) { g.regions[4].inside = 0; }},
        {"constant behind its arena", [](Graph& g) { g.regions[4].inside = 3, g.regions[4].inside_offset = k_bytes; }},
        {"contents of an input", [](Graph& g) { g.regions[0].contents = Bytes(k_bytes); }},
        {"scalar of an unknown type", [](Graph& g) { g.scalars[0].type = static_cast<DType>(99); }},
        {"scalar of another width", [](Graph& g) { g.scalars[0].type = DType::f64; }},
        {"scalar of a region's name", [](Graph& g) { g.scalars[0].name = "x"; }},
        {"event past the end", [](Graph& g) { g.events = {"ready"}, g.nodes[6] = cachefmt::EventRecordNode{1}; }},
        {"event that nobody records", [](Graph& g) { g.events = {"ready"}, g.nodes[6] = cachefmt::EventWaitNode{0}; }},
        {"host function that is not there", [](Graph& g) { g.nodes[4] = cachefmt::HostNode{"system"}; }},
        {"host function without a name", [](Graph& g) { g.nodes[4] = cachefmt::HostNode{}; }},
        {"wait for a word",
         [](Graph& g) {
             g.nodes[4] = cachefmt::MemoryOperationsNode{{{cachefmt::MemoryOperationKind::wait_32, region(0), 1, 0}}};
         }},
        {"write of a word into the weights",
         [](Graph& g) {
             g.nodes[4] = cachefmt::MemoryOperationsNode{{{cachefmt::MemoryOperationKind::write_64, region(4), 1, 0}}};
         }},
        {"no operations", [](Graph& g) { g.nodes[4] = cachefmt::MemoryOperationsNode{}; }},
        {"semaphore that is none",
         [](Graph& g) { g.nodes[4] = cachefmt::SemaphoresNode{cachefmt::SemaphoreAction::signal, {{0, 1, {}, 0}}}; }},
        {"semaphore of nobody",
         [](Graph& g) {
             g.semaphores = {"frame"},
             g.nodes[4] = cachefmt::SemaphoresNode{cachefmt::SemaphoreAction::wait, {{0, 1, {}, 0}}};
         }},
        {"a million edges to one node", [](Graph& g) { g.edges.assign(1'000'000, {0, 1}); }},
        {"200,001 nodes", [](Graph& g) { g.nodes.resize(200'001); }},
        {"200,000 nodes", [](Graph& g) { g.nodes.resize(200'000); }},
    };
    return list;
}

TEST_F(HostileReplay, StartsFromWhatRuns) { EXPECT_EQ(replay(sample), ""); }

TEST_F(HostileReplay, EndsInARefusalByTheDecoderOrByTheReplay)
{
    ASSERT_GE(hostiles().size(), 60U);
    std::size_t refused = 0, ran = 0;
    for (const Hostile& hostile : hostiles()) {
        SCOPED_TRACE(hostile.name);
        Graph graph = sample;
        hostile.spoil(graph);
        fake->clear_calls();
        auto entry = decoded(graph, cachefmt::write_payload(graph));
        EXPECT_TRUE(fake->calls().empty()) << "the decoder asks no driver";
        if (!entry) {
            EXPECT_EQ(entry.error().code, ErrorCode::corrupt);
            ++refused;
        } else {
            ran += replay(std::move(entry->graph)).empty() ? 1 : 0;
        }
        if (HasFailure()) break;
    }
    EXPECT_GE(refused, 55U);
    EXPECT_LE(ran, 25U) << "odd, and harmless";
}

TEST_F(HostileReplay, OfAnyMutationIsHarmless)
{
    const std::uint64_t seed = test::test_seed();
    std::mt19937_64 engine{seed};
    const auto below = [&](std::uint64_t end) {
        return std::uniform_int_distribution<std::uint64_t>{0, end - 1}(engine);
    };
    const Bytes payload = cachefmt::write_payload(sample);
    std::size_t accepted = 0, ran = 0;
    for (int round = 0; round < 6'000 && !HasFailure(); ++round) {
        Bytes changed = payload;
        for (std::uint64_t i = 0, n = 1 + below(3); i < n; ++i)
            changed[below(changed.size())] = static_cast<std::byte>(below(256));
        auto entry = decoded(sample, changed);
        if (!entry) continue;
        ++accepted;
        SCOPED_TRACE("WARMGRAPH_TEST_SEED=" + std::to_string(seed) + " round " + std::to_string(round));
        ran += replay(std::move(entry->graph)).empty() ? 1 : 0;
    }
    EXPECT_GT(accepted, 200U);
    EXPECT_GT(ran, 50U);
    EXPECT_LT(ran, accepted);
}

} // namespace
} // namespace warmgraph::replay::hostile_replay_test
