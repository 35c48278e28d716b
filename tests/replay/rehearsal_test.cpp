// Tests rehearse(), which runs a restored graph on copies and without its external effects. The fake CUDA driver is
// used, because it runs host functions.

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/host_functions.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph::replay::rehearsal_test {
namespace {

using cachefmt::RegionKind;
using test::FakeCuda;

constexpr std::uint64_t k_bytes = 64;
constexpr std::int32_t k_elements = 16;
constexpr const char* k_function = "rehearsal_test.count";

class RehearsalTest : public testing::Test {
protected:
    RehearsalTest()
    {
        const auto slot = [](std::uint32_t target) {
            return cachefmt::Slot{cachefmt::SlotKind::region, target, 0, 8, 0};
        };
        EXPECT_TRUE(succeeded(backends::register_host_function(
            k_function, {[](void* count) { ++*static_cast<int*>(count); }, &s_host_calls})));
        s_host_calls = 0;
        graph.regions = {{"x", RegionKind::input, k_bytes, 64, {}},
                         {"y", RegionKind::output, k_bytes, 64, {}},
                         {"scratch", RegionKind::arena, k_bytes, 64, {}}};
        graph.nodes = {cachefmt::CopyNode{slot(0), slot(2), k_bytes}, cachefmt::HostNode{k_function},
                       cachefmt::CopyNode{slot(2), slot(1), k_bytes}};
        graph.edges = {{0, 1}, {1, 2}};
        x = buffer(5);
        y = buffer(0);
    }
    ~RehearsalTest() override
    {
        for (const MemoryRef& memory : buffers) device->release(memory);
    }
    MemoryRef buffer(std::int32_t value)
    {
        buffers.push_back(*device->allocate(k_bytes));
        const std::vector<std::int32_t> values(k_elements, value);
        EXPECT_TRUE(succeeded(device->upload(buffers.back().address, std::as_bytes(std::span{values}))));
        return buffers.back();
    }
    std::int32_t first_of(const MemoryRef& from)
    {
        std::int32_t value = 0;
        EXPECT_TRUE(succeeded(stream->synchronize()));
        EXPECT_TRUE(succeeded(device->download(std::as_writable_bytes(std::span{&value, 1}), from.address)));
        return value;
    }
    [[nodiscard]] std::unique_ptr<Executable> restored()
    {
        auto made = Executable::restore(
            device, graph, modules, [](const auto&) -> Result<Bytes> { return Bytes{}; }, at(x, y), phases);
        EXPECT_TRUE(made) << made.error().message;
        return std::move(*made);
    }
    static Bindings at(const MemoryRef& from, const MemoryRef& to) { return {{from, to, {}}, {}}; }

    static inline int s_host_calls = 0;
    FakeCuda fake;
    std::shared_ptr<backends::Backend> backend = backends::make_cuda_backend(FakeCuda::options());
    std::shared_ptr<backends::Device> device = *backend->open("");
    std::unique_ptr<backends::Stream> stream = *device->create_stream();
    cachefmt::Graph graph;
    ModuleCache modules;
    Phases phases;
    std::vector<MemoryRef> buffers;
    MemoryRef x, y;
};

TEST_F(RehearsalTest, LeavesOutWhatWorksTogetherWithTheOutside)
{
    const auto exec = restored();
    const MemoryRef copy_of_x = buffer(7), copy_of_y = buffer(0);
    ASSERT_TRUE(succeeded(exec->rehearse(*stream, at(copy_of_x, copy_of_y))));
    EXPECT_EQ(first_of(copy_of_y), 7);
    EXPECT_EQ(s_host_calls, 0) << "nobody outside hears of a rehearsal";
    EXPECT_EQ(first_of(y), 0) << "the memory that it was restored with is not touched";
    ASSERT_TRUE(succeeded(exec->launch(*stream, at(x, y))));
    EXPECT_EQ(first_of(y), 5);
    EXPECT_EQ(s_host_calls, 1) << "a launch does all of it";
}

TEST_F(RehearsalTest, IsMadeForOtherMemoryEachTimeAndLeavesTheLaunchAsItWas)
{
    const auto exec = restored();
    for (const std::int32_t value : {11, 12}) {
        const MemoryRef from = buffer(value), to = buffer(0);
        ASSERT_TRUE(succeeded(exec->rehearse(*stream, at(from, to))));
        EXPECT_EQ(first_of(to), value);
    }
    const MemoryRef elsewhere = buffer(0);
    ASSERT_TRUE(succeeded(exec->launch(*stream, at(x, elsewhere))));
    EXPECT_EQ(first_of(elsewhere), 5);
    EXPECT_EQ(exec->rebound_nodes(), 1U) << "only the output moved since it was restored";
}

TEST_F(RehearsalTest, RunsInTheArenaOfTheLaunches)
{
    const auto exec = restored();
    ASSERT_TRUE(succeeded(exec->rehearse(*stream, at(buffer(9), buffer(0)))));
    EXPECT_EQ(first_of(exec->arena()), 9) << "what verification poisons is what the graph uses";
}

TEST_F(RehearsalTest, OfAGraphWithoutTheOutsideIsALaunch)
{
    graph.nodes[1] = cachefmt::EmptyNode{};
    const auto exec = restored();
    const MemoryRef to = buffer(0);
    ASSERT_TRUE(succeeded(exec->rehearse(*stream, at(x, to))));
    EXPECT_EQ(first_of(to), 5);
    EXPECT_EQ(exec->rebound_nodes(), 1U) << "the very executable that later calls launch";
}

TEST_F(RehearsalTest, RefusesBindingsThatAreTooSmall)
{
    const auto exec = restored();
    auto small = at(x, y);
    small.regions[1].size = k_bytes - 1;
    EXPECT_TRUE(test::failed_with(exec->rehearse(*stream, small), ErrorCode::invalid_argument,
                                  "region 'y' has 63 bytes, expected at least 64"));
}

} // namespace
} // namespace warmgraph::replay::rehearsal_test
