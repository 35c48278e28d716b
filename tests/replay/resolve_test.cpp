// Tests the graph in which slots are replaced by values, for cases that only devices with flat addresses have.

#include "expect_error.hpp"
#include "warmgraph/backends/host_functions.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay::resolve_test {
namespace {

using cachefmt::Slot;
using cachefmt::SlotKind;

constexpr std::uint64_t k_here = 0x7F00'0000'0000;

class Resolve : public testing::Test {
protected:
    Resolve()
    {
        graph.regions = {{"x", cachefmt::RegionKind::input, 4096, 1, {}}};
        graph.images.resize(1);
        bindings.regions = {{Address::from_flat(k_here), 4096}};
    }
    Result<backends::RawGraph> resolved() { return resolve(graph, modules, bindings); }
    static std::uint64_t word(const Bytes& bytes, std::size_t offset) { return load<std::uint64_t>(bytes, offset); }

    cachefmt::Graph graph;
    std::vector<backends::Module*> modules{nullptr};
    Bindings bindings;
};

TEST_F(Resolve, WritesPointersIntoTheMiddleOfAParameterAndOfAnAttribute)
{
    cachefmt::KernelNode kernel;
    kernel.kernel = "k";
    kernel.packed = true;
    kernel.shared_bytes = 4096;
    kernel.params = {{cachefmt::ParamKind::value, Bytes(32, std::byte{0x11}), 0, {{SlotKind::region, 0, 12, 8, 100}}}};
    kernel.attributes = {{1, Bytes(24), {{SlotKind::region, 0, 0, 8, -16}}}, {8, Bytes(4), {}}};
    kernel.function_attributes = {{8, 200'000}};
    graph.nodes = {kernel};
    const auto raw = take(resolved());
    const auto& work = std::get<backends::RawKernel>(raw.nodes[0].work);
    EXPECT_TRUE(work.packed);
    EXPECT_EQ(work.shared_bytes, 4096U);
    EXPECT_EQ(word(work.params[0].value, 12), k_here + 100);
    EXPECT_EQ(work.params[0].value[11], std::byte{0x11});
    EXPECT_EQ(work.params[0].value[20], std::byte{0x11});
    EXPECT_EQ(word(work.attributes[0].value, 0), k_here - 16);
    EXPECT_EQ(work.attributes[1].id, 8U);
    EXPECT_EQ(work.function_attributes, kernel.function_attributes);
}

TEST_F(Resolve, KeepsTheDataOfAnEdgeAmongPlainOnes)
{
    graph.nodes.resize(4);
    graph.edges = {{0, 3, {}}, {1, 3, {1, 0, 1}}, {2, 3, {}}, {0, 1, {}}};
    const auto raw = take(resolved());
    EXPECT_EQ(raw.nodes[3].dependencies, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(raw.nodes[3].edges, (std::vector<cachefmt::EdgeData>{{}, {1, 0, 1}, {}}));
    EXPECT_TRUE(raw.nodes[1].edges.empty());
}

TEST_F(Resolve, NamesEventsByTheirHandles)
{
    graph.events = {"ready", "done"};
    graph.nodes = {cachefmt::EventWaitNode{0}, cachefmt::EventRecordNode{1}};
    EXPECT_TRUE(failed_with(resolved(), ErrorCode::invalid_argument, "0 events"));
    bindings.events = {7, 8};
    const auto raw = take(resolved());
    EXPECT_EQ(std::get<backends::RawEventWait>(raw.nodes[0].work).event, 7U);
    EXPECT_EQ(std::get<backends::RawEventRecord>(raw.nodes[1].work).event, 8U);
}

TEST_F(Resolve, GivesMemoryOperationsTheirAddressesAndABarrierNone)
{
    using enum cachefmt::MemoryOperationKind;
    graph.regions.push_back({"y", cachefmt::RegionKind::state, 64, 8, {}});
    bindings.regions.push_back({Address::from_flat(k_here + 8192), 64});
    graph.nodes = {cachefmt::MemoryOperationsNode{{{wait_32, {SlotKind::region, 0, 0, 8, 16}, 3, 1},
                                                   {barrier, {}, 0, 1},
                                                   {write_64, {SlotKind::region, 1, 0, 8, 8}, 1ULL << 40, 0}}}};
    const auto raw = take(resolved());
    const backends::RawMemoryOperations expected{{{wait_32, Address::from_flat(k_here + 16), 3, 1},
                                                  {barrier, {}, 0, 1},
                                                  {write_64, Address::from_flat(k_here + 8192 + 8), 1ULL << 40, 0}}};
    EXPECT_EQ(std::get<backends::RawMemoryOperations>(raw.nodes[0].work), expected);
}

TEST_F(Resolve, GivesSemaphoresTheirHandlesAndTheScalarsThatTheyFollow)
{
    using enum cachefmt::SemaphoreAction;
    const auto wide = static_cast<std::uint32_t>(graph.scalars.size()), narrow = wide + 1;
    graph.scalars.push_back({"frame", DType::u64});
    graph.scalars.push_back({"step", DType::i32});
    bindings.scalars.push_back(1ULL << 40);
    bindings.scalars.push_back(static_cast<std::uint32_t>(-3));
    graph.semaphores = {"ready", "shown"};
    graph.nodes = {
        cachefmt::SemaphoresNode{wait, {{1, 0, Slot{SlotKind::scalar, wide, 0, 8, -1}, 2}}},
        cachefmt::SemaphoresNode{signal, {{0, 9, {}, 0}, {1, 7ULL << 32, Slot{SlotKind::scalar, narrow, 0, 4, 5}, 1}}}};
    EXPECT_TRUE(failed_with(resolved(), ErrorCode::invalid_argument, "0 semaphores"));
    bindings.semaphores = {17, 18};
    const auto raw = take(resolved());
    const backends::RawSemaphores waits{wait, {{18, (1ULL << 40) - 1, 2}}},
        signals{signal, {{17, 9, 0}, {18, (7ULL << 32) + 2, 1}}};
    EXPECT_EQ(std::get<backends::RawSemaphores>(raw.nodes[0].work), waits);
    EXPECT_EQ(std::get<backends::RawSemaphores>(raw.nodes[1].work), signals);
}

void host_function(void*) {}

TEST_F(Resolve, FindsHostFunctionsByNameAndSaysWhichIsMissing)
{
    graph.nodes = {cachefmt::HostNode{"resolve_test.function"}};
    EXPECT_TRUE(failed_with(resolved(), ErrorCode::not_found, "'resolve_test.function' is not registered"));
    int data = 0;
    ASSERT_TRUE(succeeded(backends::register_host_function("resolve_test.function", {host_function, &data})));
    const auto raw = take(resolved());
    EXPECT_EQ(std::get<backends::RawHost>(raw.nodes[0].work).data, &data);
    EXPECT_EQ(backends::name_of({host_function, &data}), "resolve_test.function");
    EXPECT_EQ(backends::name_of({host_function, nullptr}), std::nullopt);
    EXPECT_TRUE(failed_with(backends::register_host_function("resolve_test.function", {host_function, nullptr}),
                            ErrorCode::invalid_argument, "registered already"));
}

TEST_F(Resolve, KeepsTheBoxOfACopy)
{
    cachefmt::CopyNode copy;
    copy.source = {SlotKind::region, 0, 0, 8, 64};
    copy.destination = {SlotKind::region, 0, 0, 8, 2048};
    copy.size = 32;
    copy.rows = 4;
    copy.slices = 2;
    copy.source_pitch = {64, 256};
    copy.destination_pitch = {128, 512};
    copy.source_space = cachefmt::MemorySpace::host;
    graph.nodes = {copy};
    const auto raw = take(resolved());
    const auto& work = std::get<backends::RawCopy>(raw.nodes[0].work);
    EXPECT_EQ(work.source.flat(), k_here + 64);
    EXPECT_EQ(work.destination.flat(), k_here + 2048);
    EXPECT_EQ(std::pair(work.rows, work.slices), (std::pair<std::uint64_t, std::uint64_t>(4, 2)));
    EXPECT_EQ(work.source_pitch, copy.source_pitch);
    EXPECT_EQ(work.destination_pitch, copy.destination_pitch);
    EXPECT_EQ(work.source_space, cachefmt::MemorySpace::host);
}

} // namespace
} // namespace warmgraph::replay::resolve_test
