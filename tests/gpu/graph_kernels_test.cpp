// Kernel nodes with every attribute, and with both forms of parameters.
#include <cstring>

#include "graph/launch_attributes.hpp"
#include "graph_fixture.hpp"

namespace warmgraph::test::graph_kernels_test {
namespace {

class GraphKernels : public GraphTest {
protected:
    static CUlaunchAttribute attribute(CUlaunchAttributeID id, const std::function<void(CUlaunchAttributeValue&)>& set)
    {
        CUlaunchAttribute made{};
        made.id = id;
        set(made.value);
        return made;
    }
    static CUlaunchAttribute cluster(unsigned blocks)
    {
        return attribute(CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
                         [&](auto& value) { value.clusterDim = {blocks, 1, 1}; });
    }
    /// The bytes of an attribute of the only node in the graph.
    static Bytes held(const RawGraph& graph, std::uint32_t id)
    {
        for (const RawAttribute& found : std::get<RawKernel>(graph.nodes.at(0).work).attributes)
            if (found.id == id) return found.value;
        return {};
    }
    static std::int32_t function_attribute(const RawGraph& graph, std::uint32_t id)
    {
        for (const FunctionAttribute& found : std::get<RawKernel>(graph.nodes.at(0).work).function_attributes)
            if (found.id == id) return found.value;
        return -1000;
    }
    /// Captures `touch` with an attribute, and expects exactly the bytes of this attribute in the node.
    void expect_kept(const CUlaunchAttribute& wanted)
    {
        const RawGraph raw = expect_same(capture([&] { touch(stream, y, 4, {wanted}); }));
        const cuda::AttributeInfo* const info = cuda::attribute_info(wanted.id);
        ASSERT_NE(info, nullptr);
        const Bytes value = held(raw, wanted.id);
        ASSERT_EQ(value.size(), info->size) << info->name;
        EXPECT_EQ(std::memcmp(value.data(), &wanted.value, info->size), 0) << info->name;
    }
};

TEST_F(GraphKernels, HaveNoAttributesWhenNoneWasGiven)
{
    const RawGraph raw = expect_same(capture([&] { touch(stream, y, 4); }));
    const auto& kernel = std::get<RawKernel>(raw.nodes.at(0).work);
    EXPECT_EQ(kernel.module, gpu.module.get());
    EXPECT_EQ(kernel.kernel, "touch");
    EXPECT_EQ(kernel.grid, (Dim3{k_count / k_block, 1, 1}));
    EXPECT_EQ(kernel.block, (Dim3{k_block, 1, 1}));
    EXPECT_TRUE(kernel.attributes.empty());
    EXPECT_FALSE(kernel.packed);
    ASSERT_EQ(kernel.params.size(), 3U);
    EXPECT_EQ(load<std::uint64_t>(kernel.params[0].value), y);
    EXPECT_EQ(load<int>(kernel.params[2].value), 4);
}

TEST_F(GraphKernels, KeepClusterDimensions) { expect_kept(cluster(4)); }

TEST_F(GraphKernels, KeepAClusterOfSixteen)
{
    native.check(driver.cuFuncSetAttribute(function("touch"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
                 "cuFuncSetAttribute");
    const NativeGraph captured = capture([&] { touch(stream, y, 4, {cluster(16)}); });
    const RawGraph raw = read(captured);
    EXPECT_EQ(function_attribute(raw, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED), 1);
    expect_kept(cluster(16));
    native.check(driver.cuFuncSetAttribute(function("touch"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0),
                 "cuFuncSetAttribute");
    const auto restored = take(make_exec(gpu.core, raw)); // must set the attribute again
    EXPECT_EQ(contents_after(*restored), contents_after(*take(cuda::CudaGraphExec::adopt(gpu.core, captured.get()))));
    native.check(driver.cuFuncSetAttribute(function("touch"), CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 0),
                 "cuFuncSetAttribute");
}

TEST_F(GraphKernels, KeepTheClusterThatAFunctionRequiresAndHowItIsScheduled)
{
    const auto set = [&](CUfunction_attribute id, int value) {
        native.check(driver.cuFuncSetAttribute(function("touch"), id, value), "cuFuncSetAttribute");
    };
    const std::vector<std::pair<CUfunction_attribute, int>> wanted{
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_WIDTH, 2},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_HEIGHT, 1},
        {CU_FUNC_ATTRIBUTE_REQUIRED_CLUSTER_DEPTH, 1},
        {CU_FUNC_ATTRIBUTE_CLUSTER_SCHEDULING_POLICY_PREFERENCE, CU_CLUSTER_SCHEDULING_POLICY_LOAD_BALANCING}};
    for (const auto& [id, value] : wanted) set(id, value);
    const NativeGraph captured = capture([&] { touch(stream, y, 4); });
    const RawGraph raw = expect_same(captured);
    for (const auto& [id, value] : wanted) EXPECT_EQ(function_attribute(raw, id), value) << id;
    for (const auto& [id, value] : wanted) set(id, 0);
    static_cast<void>(take(build_graph(gpu.core, raw)));
    for (const auto& [id, value] : wanted) {
        int now = -1;
        native.check(driver.cuFuncGetAttribute(&now, id, function("touch")), "cuFuncGetAttribute");
        EXPECT_EQ(now, value) << id;
        set(id, 0);
    }
}

TEST_F(GraphKernels, KeepCooperativeLaunches)
{
    expect_kept(attribute(CU_LAUNCH_ATTRIBUTE_COOPERATIVE, [](auto& value) { value.cooperative = 1; }));
}

TEST_F(GraphKernels, KeepPriorities)
{
    expect_kept(attribute(CU_LAUNCH_ATTRIBUTE_PRIORITY, [](auto& value) { value.priority = -1; }));
}

TEST_F(GraphKernels, KeepMemorySyncDomains)
{
    expect_kept(attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN,
                          [](auto& value) { value.memSyncDomain = CU_LAUNCH_MEM_SYNC_DOMAIN_REMOTE; }));
    expect_kept(attribute(CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP, [](auto& value) {
        value.memSyncDomainMap.default_ = 1;
        value.memSyncDomainMap.remote = 0;
    }));
}

TEST_F(GraphKernels, KeepAccessPolicyWindows)
{
    expect_kept(attribute(CU_LAUNCH_ATTRIBUTE_ACCESS_POLICY_WINDOW, [&](auto& value) {
        value.accessPolicyWindow.base_ptr = reinterpret_cast<void*>(y); // NOLINT: a device pointer
        value.accessPolicyWindow.num_bytes = k_count * sizeof(int);
        value.accessPolicyWindow.hitRatio = 0.5F;
        value.accessPolicyWindow.hitProp = CU_ACCESS_PROPERTY_PERSISTING;
        value.accessPolicyWindow.missProp = CU_ACCESS_PROPERTY_STREAMING;
    }));
}

TEST_F(GraphKernels, RaiseTheLimitOfDynamicSharedMemory)
{
    constexpr int k_bytes = 100 * 1024;
    const auto set = [&](int value) {
        native.check(
            driver.cuFuncSetAttribute(function("far_shared"), CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, value),
            "cuFuncSetAttribute");
    };
    set(k_bytes);
    const NativeGraph captured = capture([&] {
        int count = k_count, words = k_bytes / 4;
        native.launch(stream, function("far_shared"), k_count / k_block, k_block, {&y, &count, &words}, k_bytes);
    });
    const RawGraph raw = expect_same(captured);
    EXPECT_EQ(std::get<RawKernel>(raw.nodes.at(0).work).shared_bytes, static_cast<std::uint32_t>(k_bytes));
    EXPECT_EQ(function_attribute(raw, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES), k_bytes);
    set(0); // as in a new process
    const auto restored = take(make_exec(gpu.core, raw));
    const auto as_it_is = take(cuda::CudaGraphExec::adopt(gpu.core, captured.get()));
    EXPECT_EQ(contents_after(*restored), contents_after(*as_it_is));
}

TEST_F(GraphKernels, KeepTheSharedMemoryCarveOut)
{
    const auto set = [&](int value) {
        native.check(
            driver.cuFuncSetAttribute(function("touch"), CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, value),
            "cuFuncSetAttribute");
    };
    set(60);
    const NativeGraph captured = capture([&] { touch(stream, y, 4); });
    const RawGraph raw = expect_same(captured);
    EXPECT_EQ(function_attribute(raw, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT), 60);
    set(-1);
    static_cast<void>(take(build_graph(gpu.core, raw)));
    int now = 0;
    native.check(driver.cuFuncGetAttribute(&now, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, function("touch")),
                 "cuFuncGetAttribute");
    EXPECT_EQ(now, 60);
    set(-1);
}

TEST_F(GraphKernels, TakeParametersOfMoreThanFourKilobytes)
{
    const RawGraph raw = expect_same(capture([&] {
        int count = k_count, add = 3;
        std::vector<int> table(2000);
        std::iota(table.begin(), table.end(), 17);
        native.launch(stream, function("big"), k_count / k_block, k_block, {&y, &count, table.data(), &add});
    }));
    EXPECT_EQ(std::get<RawKernel>(raw.nodes.at(0).work).params.at(2).value.size(), 8000U);
}

TEST_F(GraphKernels, TakeOnePackedBuffer)
{
    struct Packed {
        CUdeviceptr y;
        int count, add;
    } packed{y, k_count, 9};
    std::size_t size = sizeof packed;
    const RawGraph raw = expect_same(capture([&] {
        void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                         CU_LAUNCH_PARAM_END};
        CUlaunchConfig config{};
        config.gridDimX = k_count / k_block;
        config.gridDimY = config.gridDimZ = 1;
        config.blockDimX = k_block;
        config.blockDimY = config.blockDimZ = 1;
        config.hStream = stream;
        native.check(driver.cuLaunchKernelEx(&config, function("touch"), nullptr, static_cast<void**>(extra)),
                     "cuLaunchKernelEx");
    }));
    const auto& kernel = std::get<RawKernel>(raw.nodes.at(0).work);
    // The driver may return the parameters in either form; the bytes must be in the result.
    const Bytes& first = kernel.params.at(0).value;
    EXPECT_EQ(load<std::uint64_t>(first), y);
    EXPECT_EQ(first.size(), kernel.packed ? sizeof packed : sizeof y);
}

TEST_F(GraphKernels, KeepProgrammaticEdges)
{
    const CUlaunchAttribute overlap = attribute(CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                                [](auto& value) { value.programmaticStreamSerializationAllowed = 1; });
    const RawGraph raw = expect_same(capture([&] {
        int count = k_count;
        touch(stream, y, 1);
        for (int i = 0; i < 3; ++i) {
            native.launch(stream, function("first_of_pair"), k_count / k_block, k_block, {&y, &count});
            native.launch(stream, function("second_of_pair"), k_count / k_block, k_block, {&y, &count}, 0, {overlap});
        }
    }));
    ASSERT_EQ(raw.nodes.size(), 7U);
    EXPECT_TRUE(raw.nodes[1].edges.empty());
    ASSERT_EQ(raw.nodes[2].edges.size(), 1U);
    EXPECT_EQ(raw.nodes[2].edges[0].type, CU_GRAPH_DEPENDENCY_TYPE_PROGRAMMATIC);
    EXPECT_EQ(raw.nodes[2].edges[0].from_port, CU_GRAPH_KERNEL_NODE_PORT_PROGRAMMATIC);
}

TEST_F(GraphKernels, RefuseParametersOfAnotherNumberOrSize)
{
    RawGraph raw = read(capture([&] { touch(stream, y, 4); }));
    auto& kernel = std::get<RawKernel>(raw.nodes.at(0).work);
    kernel.params[2].value.resize(8);
    EXPECT_TRUE(failed_with(make_exec(gpu.core, raw), ErrorCode::invalid_argument,
                            "parameter 2 is a value of 8 bytes, the kernel takes 4"));
    kernel.params.pop_back();
    EXPECT_TRUE(failed_with(make_exec(gpu.core, raw), ErrorCode::invalid_argument, "node 0 of 1"));
}

TEST_F(GraphKernels, TakeNewArgumentsButNoNewAttributes)
{
    const CUdeviceptr other = allocate();
    const NativeGraph captured = capture([&] { touch(stream, other, 4, {cluster(2)}); });
    RawGraph raw = read(captured);
    const auto exec = take(make_exec(gpu.core, raw));
    auto& kernel = std::get<RawKernel>(raw.nodes.at(0).work);
    std::memcpy(kernel.params[0].value.data(), &y, sizeof y);
    ASSERT_TRUE(succeeded(exec->update(0, kernel)));
    const NativeGraph wanted = capture([&] { touch(stream, y, 4, {cluster(2)}); });
    EXPECT_EQ(contents_after(*exec), contents_after(*take(cuda::CudaGraphExec::adopt(gpu.core, wanted.get()))));
    kernel.attributes.clear();
    EXPECT_TRUE(failed_with(exec->update(0, kernel), ErrorCode::unsupported, "launch attributes"));
}

} // namespace
} // namespace warmgraph::test::graph_kernels_test
