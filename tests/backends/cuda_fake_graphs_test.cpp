// Tests captured and restored graphs on the fake driver. It shows differences that the results on a GPU would not show.
#include <array>
#include <cstring>

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test::cuda_fake_graphs_test {
namespace {

using warmgraph::test::FakeCuda;

constexpr std::int32_t k_count = 64;
constexpr std::uint64_t k_bytes = k_count * 4;

class CudaFakeGraphs : public testing::Test {
protected:
    CudaFakeGraphs() : backend(make_cuda_backend(FakeCuda::options())), device(*backend->open("")) {}

    std::vector<std::int32_t> read(const MemoryRef& memory) const
    {
        std::vector<std::int32_t> values(k_count);
        EXPECT_TRUE(succeeded(device->download(std::as_writable_bytes(std::span(values)), memory.address)));
        return values;
    }
    static std::vector<std::int32_t> counting()
    {
        std::vector<std::int32_t> values(k_count);
        for (std::int32_t i = 0; i < k_count; ++i) values[static_cast<std::size_t>(i)] = i;
        return values;
    }
    /// As another user of the driver, makes a graph that launches iota from a registered module.
    void make_graph(CUDA_KERNEL_NODE_PARAMS given)
    {
        const Bytes image = *module->image();
        CUmodule theirs = nullptr;
        ASSERT_EQ(fake.entry<decltype(::cuModuleLoadData)>("cuModuleLoadData")(&theirs, image.data()), CUDA_SUCCESS);
        ASSERT_EQ(fake.entry<decltype(::cuModuleGetFunction)>("cuModuleGetFunction")(&given.func, theirs, "iota"),
                  CUDA_SUCCESS);
        ASSERT_TRUE(succeeded(device->register_module(theirs, image)));
        given.gridDimX = given.gridDimY = given.gridDimZ = given.blockDimY = given.blockDimZ = 1;
        given.blockDimX = k_count;
        ASSERT_EQ(fake.entry<decltype(::cuGraphCreate)>("cuGraphCreate")(&graph, 0), CUDA_SUCCESS);
        ASSERT_EQ(
            fake.entry<decltype(::cuGraphAddKernelNode)>("cuGraphAddKernelNode")(&node, graph, nullptr, 0, &given),
            CUDA_SUCCESS);
    }
    FakeCuda fake;
    CUgraph graph = nullptr;
    CUgraphNode node = nullptr;
    std::shared_ptr<Backend> backend;
    std::shared_ptr<Device> device;
    std::unique_ptr<Module> module = *device->compiler().compile(warmgraph::test::k_fake_cuda_program, "");
};

TEST_F(CudaFakeGraphs, AreInstantiatedForPrioritiesWhereANodeHasOne)
{
    const MemoryRef memory = *device->allocate(k_bytes);
    RawParam n;
    append(n.value, k_count);
    RawKernel kernel{module.get(), "iota", {1, 1, 1}, {k_count, 1, 1}, {{ParamKind::memory, {}, memory.address, 0}, n}};
    RawGraph raw;
    raw.nodes = {{kernel, {}}, {kernel, {0}}};
    EXPECT_TRUE(device->instantiate(raw));
    EXPECT_EQ(fake.instantiate_flags(), 0U) << "the launching stream's holds for all";
    kernel.attributes = {{CU_LAUNCH_ATTRIBUTE_PRIORITY, {std::byte{2}, {}, {}, {}}}};
    raw.nodes[1].work = kernel;
    EXPECT_TRUE(device->instantiate(raw));
    EXPECT_EQ(fake.instantiate_flags(), CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY);
    device->release(memory);
}

/// Arguments may be in one buffer (CU_LAUNCH_PARAM_BUFFER_POINTER), as cuBLAS passes them. They are read, built and
/// updated in this form.
TEST_F(CudaFakeGraphs, KeepArgumentsThatWereGivenAsOneBuffer)
{
    const auto current = device->enter();
    const MemoryRef x = *device->allocate(k_bytes), y = *device->allocate(k_bytes);

    struct {
        std::uint64_t memory;
        std::int32_t count;
    } arguments{x.address.flat(), k_count};
    std::size_t size = 12;
    std::array<void*, 5> extra{CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                               CU_LAUNCH_PARAM_END};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.extra = extra.data();
    ASSERT_NO_FATAL_FAILURE(make_graph(params));

    auto raw = take(device->recording().read_graph(graph));
    auto& kernel = std::get<RawKernel>(raw.nodes.at(0).work);
    EXPECT_TRUE(kernel.packed);
    ASSERT_EQ(kernel.params.size(), 1U);
    ASSERT_EQ(kernel.params[0].value.size(), size);

    const auto exec = take(device->instantiate(raw));
    const auto stream = *device->create_stream();
    EXPECT_TRUE(succeeded(exec->launch(*stream)));
    const std::uint64_t other = y.address.flat();
    std::memcpy(kernel.params[0].value.data(), &other, sizeof other);
    EXPECT_TRUE(succeeded(exec->update(0, kernel)));
    EXPECT_TRUE(succeeded(exec->launch(*stream)));
    EXPECT_TRUE(succeeded(stream->synchronize()));
    EXPECT_EQ(read(x), counting());
    EXPECT_EQ(read(y), counting());

    // An entry may contain any size. If the buffer was too short, the driver would read past its end.
    kernel.params[0].value.resize(8);
    EXPECT_TRUE(
        failed_with(exec->update(0, kernel), ErrorCode::invalid_argument, "changes its parameter buffer's size"));
    EXPECT_TRUE(failed_with(device->instantiate(raw), ErrorCode::invalid_argument,
                            "the parameter buffer has 8 bytes, the kernel takes 12"));
    EXPECT_TRUE(failed_with(stream->launch(kernel), ErrorCode::invalid_argument,
                            "the parameter buffer has 8 bytes, the kernel takes 12"));

    EXPECT_EQ(fake.entry<decltype(::cuGraphDestroy)>("cuGraphDestroy")(graph), CUDA_SUCCESS);
    device->release(x);
    device->release(y);
}

/// If the attribute was left out, the restored kernel might run differently.
TEST_F(CudaFakeGraphs, AreRefusedWithALaunchAttributeThatOnlyANewerDriverKnows)
{
    const auto current = device->enter();
    const MemoryRef x = *device->allocate(k_bytes);
    std::uint64_t memory = x.address.flat();
    std::int32_t count = k_count;
    std::array<void*, 2> arguments{&memory, &count};
    CUDA_KERNEL_NODE_PARAMS params{};
    params.kernelParams = arguments.data();
    ASSERT_NO_FATAL_FAILURE(make_graph(params));
    EXPECT_TRUE(device->recording().read_graph(graph)) << "it is there, and nobody set it";

    CUlaunchAttributeValue value{};
    value.priority = 1;
    using SetByNumber = CUresult(CUgraphNode, std::uint32_t, const CUlaunchAttributeValue*);
    ASSERT_EQ(fake.entry<SetByNumber>("cuGraphKernelNodeSetAttribute")(node, FAKE_CUDA_LATER_ATTRIBUTE, &value),
              CUDA_SUCCESS);
    EXPECT_TRUE(
        failed_with(device->recording().read_graph(graph), ErrorCode::not_recordable, "launched with attribute 40"));
    EXPECT_EQ(fake.entry<decltype(::cuGraphDestroy)>("cuGraphDestroy")(graph), CUDA_SUCCESS);
    device->release(x);
}

} // namespace
} // namespace warmgraph::backends::test::cuda_fake_graphs_test
