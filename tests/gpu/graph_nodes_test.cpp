// Nodes of all other kinds (copies, fills, events, host functions, child graphs, allocations), and nodes that are
// refused.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "graph_fixture.hpp"

// Finds a driver function by its plain name. The type is that of the version that the header's macros choose (#name is
// not expanded by these macros).
#define WARMGRAPH_FIND(name) native.find<decltype(&::name)>(#name)

namespace warmgraph::test::graph_nodes_test {
namespace {

class GraphNodes : public GraphTest {
protected:
    CUdeviceptr host(std::size_t bytes)
    {
        void* memory = nullptr;
        native.check(driver.cuMemHostAlloc(&memory, bytes, 0), "cuMemHostAlloc");
        m_host.push_back(memory);
        return reinterpret_cast<CUdeviceptr>(memory);
    }
    ~GraphNodes() override
    {
        static_cast<void>(driver.cuCtxSynchronize());
        for (void* const memory : m_host) static_cast<void>(driver.cuMemFreeHost(memory));
    }
    void copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) const
    {
        native.check(driver.cuMemcpyAsync(to, from, bytes, stream), "cuMemcpyAsync");
    }
    static CUDA_MEMCPY3D box(CUdeviceptr to, CUdeviceptr from, std::size_t width, std::size_t height, std::size_t depth)
    {
        CUDA_MEMCPY3D made{};
        made.srcMemoryType = made.dstMemoryType = CU_MEMORYTYPE_DEVICE;
        made.srcDevice = from;
        made.dstDevice = to;
        made.WidthInBytes = width;
        made.Height = height;
        made.Depth = depth;
        return made;
    }
    CUgraphNode add_child(CUgraph to, const std::vector<CUgraphNode>& after, CUgraph child) const
    {
        CUgraphNode made = nullptr;
        native.check(WARMGRAPH_FIND(cuGraphAddChildGraphNode)(&made, to, after.data(), after.size(), child),
                     "cuGraphAddChildGraphNode");
        return made;
    }
    CUDA_MEM_ALLOC_NODE_PARAMS allocation(std::size_t bytes) const
    {
        CUDA_MEM_ALLOC_NODE_PARAMS made{};
        made.poolProps.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
        made.poolProps.location = {CU_MEM_LOCATION_TYPE_DEVICE, gpu.core.device};
        made.bytesize = bytes;
        return made;
    }

private:
    std::vector<void*> m_host;
};

using Dependencies = std::vector<std::uint32_t>;

TEST_F(GraphNodes, CopyInOneTwoAndThreeDimensions)
{
    const CUdeviceptr scratch = allocate();
    const RawGraph raw = expect_same(capture([&] {
        touch(stream, y, 2);
        copy(scratch, y, k_count * 4);
        touch(stream, y, 3);
        CUDA_MEMCPY3D plane = box(y, scratch, 40, 10, 1);
        plane.srcXInBytes = 8;
        plane.srcY = 2;
        plane.srcPitch = 128;
        plane.dstPitch = 256;
        native.check(driver.cuMemcpy3DAsync(&plane, stream), "cuMemcpy3DAsync");
        CUDA_MEMCPY3D cube = box(y, scratch, 12, 3, 4);
        cube.srcZ = 1;
        cube.srcPitch = 64;
        cube.srcHeight = 5;
        cube.dstXInBytes = 4;
        cube.dstY = 1;
        cube.dstZ = 2;
        cube.dstPitch = 32;
        cube.dstHeight = 8;
        native.check(driver.cuMemcpy3DAsync(&cube, stream), "cuMemcpy3DAsync");
    }));
    EXPECT_EQ(std::get<RawCopy>(raw.nodes.at(1).work),
              (RawCopy{Address::from_flat(y), Address::from_flat(scratch), k_count * 4}));
    EXPECT_EQ(
        std::get<RawCopy>(raw.nodes.at(3).work),
        (RawCopy{Address::from_flat(scratch + 2 * 128 + 8), Address::from_flat(y), 40, 10, 1, {128, 0}, {256, 0}}));
    EXPECT_EQ(std::get<RawCopy>(raw.nodes.at(4).work), (RawCopy{Address::from_flat(scratch + 64 * 5),
                                                                Address::from_flat(y + 2 * 32 * 8 + 32 + 4),
                                                                12,
                                                                3,
                                                                4,
                                                                {64, 320},
                                                                {32, 256}}));
}

TEST_F(GraphNodes, CopyThroughPageLockedHostMemory)
{
    const CUdeviceptr there = host(k_count * 4);
    const RawGraph raw = expect_same(capture([&] {
        touch(stream, y, 2);
        copy(there, y, k_count * 4);
        touch(stream, y, 3);
        copy(y + 4, there, k_count * 2);
    }));
    const auto& out = std::get<RawCopy>(raw.nodes.at(1).work);
    const auto& in = std::get<RawCopy>(raw.nodes.at(3).work);
    EXPECT_EQ(out.source_space, MemorySpace::device);
    EXPECT_EQ(out.destination_space, MemorySpace::host);
    EXPECT_EQ(out.destination, Address::from_flat(there));
    EXPECT_EQ(in.source_space, MemorySpace::host);
    EXPECT_EQ(in.destination_space, MemorySpace::device);
}

TEST_F(GraphNodes, FillElementsOfEverySizeAndBoxes)
{
    const RawGraph raw = expect_same(capture([&] {
        touch(stream, y, 2);
        native.check(driver.cuMemsetD8Async(y + 3, 0xab, 5, stream), "cuMemsetD8Async");
        native.check(driver.cuMemsetD16Async(y + 32, 0xabcd, 9, stream), "cuMemsetD16Async");
        native.check(driver.cuMemsetD32Async(y + 64, 0xabcdef01, 7, stream), "cuMemsetD32Async");
        native.check(driver.cuMemsetD2D16Async(y + 1024, 256, 0x1234, 11, 6, stream), "cuMemsetD2D16Async");
        touch(stream, y, 1);
    }));
    const auto bytes = [](std::initializer_list<int> values) {
        Bytes made;
        for (const int value : values) made.push_back(static_cast<std::byte>(value));
        return made;
    };
    EXPECT_EQ(std::get<RawFill>(raw.nodes.at(1).work), (RawFill{Address::from_flat(y + 3), bytes({0xab}), 5}));
    EXPECT_EQ(std::get<RawFill>(raw.nodes.at(2).work), (RawFill{Address::from_flat(y + 32), bytes({0xcd, 0xab}), 18}));
    EXPECT_EQ(std::get<RawFill>(raw.nodes.at(3).work),
              (RawFill{Address::from_flat(y + 64), bytes({0x01, 0xef, 0xcd, 0xab}), 28}));
    EXPECT_EQ(std::get<RawFill>(raw.nodes.at(4).work),
              (RawFill{Address::from_flat(y + 1024), bytes({0x34, 0x12}), 22, 6, 256}));
}

TEST_F(GraphNodes, RecordAndWaitForEventsOfOthers)
{
    const CUevent done = native.event(), ready = native.event(), other = native.event();
    const RawGraph raw = expect_same(capture([&] {
        native.check(driver.cuStreamWaitEvent(stream, ready, CU_EVENT_WAIT_EXTERNAL), "cuStreamWaitEvent");
        touch(stream, y, 2);
        native.check(WARMGRAPH_FIND(cuEventRecordWithFlags)(done, stream, CU_EVENT_RECORD_EXTERNAL),
                     "cuEventRecordWithFlags");
    }));
    ASSERT_EQ(raw.nodes.size(), 3U);
    EXPECT_EQ(std::get<RawEventWait>(raw.nodes[0].work).event, reinterpret_cast<std::uintptr_t>(ready));
    EXPECT_EQ(std::get<RawEventRecord>(raw.nodes[2].work).event, reinterpret_cast<std::uintptr_t>(done));
    const auto exec = take(make_exec(gpu.core, raw));
    EXPECT_TRUE(succeeded(exec->update(0, RawEventWait{reinterpret_cast<std::uintptr_t>(other)})));
    EXPECT_TRUE(succeeded(exec->update(2, RawEventRecord{reinterpret_cast<std::uintptr_t>(other)})));
    EXPECT_TRUE(succeeded(exec->launch(*exec_stream)));
    native.check(driver.cuEventSynchronize(other), "cuEventSynchronize");
}

TEST_F(GraphNodes, CallHostFunctions)
{
    static std::atomic<int> first, second;
    const auto count = [](void* data) { ++*static_cast<std::atomic<int>*>(data); };
    const NativeGraph captured = capture([&] {
        touch(stream, y, 2);
        native.check(WARMGRAPH_FIND(cuLaunchHostFunc)(stream, count, &first), "cuLaunchHostFunc");
        touch(stream, y, 3);
    });
    const RawGraph raw = expect_same(captured);
    EXPECT_EQ(std::get<RawHost>(raw.nodes.at(1).work), (RawHost{count, &first}));
    EXPECT_EQ(first, 2);
    const auto exec = take(make_exec(gpu.core, raw));
    EXPECT_TRUE(succeeded(exec->update(1, RawHost{count, &second})));
    static_cast<void>(contents_after(*exec));
    EXPECT_EQ(first, 2);
    EXPECT_EQ(second, 1);
}

TEST_F(GraphNodes, InlineChildGraphsOfChildGraphs)
{
    const CUdeviceptr a = allocate(), b = allocate();
    const NativeGraph inner = graph(), middle = graph(), outer = graph();
    add_touch(inner.get(), a, 1);
    add_touch(inner.get(), b, 2);
    const CUgraphNode in_middle = add_child(middle.get(), {add_touch(middle.get(), y, 3)}, inner.get());
    add_touch(middle.get(), y, 4, {in_middle});
    const CUgraphNode child =
        add_child(outer.get(), {add_touch(outer.get(), a, 5), add_touch(outer.get(), b, 6)}, inner.get());
    const CUgraphNode nested = add_child(outer.get(), {child}, middle.get());
    add_touch(outer.get(), y, 7, {child, nested});
    add_touch(outer.get(), a, 8, {child});
    const RawGraph raw = expect_same(outer);
    // The child has two nodes before it, two first nodes, two last nodes and three nodes after it: each of these groups
    // is joined by an empty node. The inner graph of `middle` needs no empty node.
    ASSERT_EQ(raw.nodes.size(), 2U + (1 + 2 + 1) + 4 + 2);
    EXPECT_EQ(std::ranges::count_if(raw.nodes,
                                    [](const RawNode& node) { return std::holds_alternative<RawEmpty>(node.work); }),
              2);
}

TEST_F(GraphNodes, MakeAnEmptyNodeOfAnEmptyChildGraph)
{
    const NativeGraph inner = graph(), outer = graph();
    const CUgraphNode child = add_child(outer.get(), {add_touch(outer.get(), y, 5)}, inner.get());
    add_touch(outer.get(), y, 7, {child});
    const RawGraph raw = expect_same(outer);
    ASSERT_EQ(raw.nodes.size(), 3U);
    EXPECT_TRUE(std::holds_alternative<RawEmpty>(raw.nodes[1].work));
    EXPECT_EQ(raw.nodes[2].dependencies, Dependencies{1});
}

TEST_F(GraphNodes, GiveAllocationsAndTheirFreesAsRanges)
{
    CUdeviceptr own = 0;
    const NativeGraph captured = capture([&] {
        native.check(WARMGRAPH_FIND(cuMemAllocAsync)(&own, k_count * 4, stream), "cuMemAllocAsync");
        copy(own, y, k_count * 4);
        touch(stream, own, 9);
        copy(y, own, k_count * 4);
        native.check(WARMGRAPH_FIND(cuMemFreeAsync)(own, stream), "cuMemFreeAsync");
    });
    RawGraph raw = read(captured);
    ASSERT_EQ(raw.nodes.size(), 5U);
    ASSERT_EQ(raw.allocations.size(), 1U);
    EXPECT_EQ(raw.allocations[0].memory.address, Address::from_flat(own));
    EXPECT_GE(raw.allocations[0].memory.size, k_count * 4U);
    EXPECT_TRUE(std::holds_alternative<RawEmpty>(raw.nodes[0].work));
    EXPECT_TRUE(std::holds_alternative<RawEmpty>(raw.nodes[4].work));
    // With our own memory in place of the graph's allocation, the graph must do the same.
    const CUdeviceptr arena = allocate();
    std::get<RawCopy>(raw.nodes[1].work).destination = Address::from_flat(arena);
    std::memcpy(std::get<RawKernel>(raw.nodes[2].work).params[0].value.data(), &arena, sizeof arena);
    std::get<RawCopy>(raw.nodes[3].work).source = Address::from_flat(arena);
    const auto restored = take(make_exec(gpu.core, raw));
    const auto as_it_is = take(cuda::CudaGraphExec::adopt(gpu.core, captured.get()));
    EXPECT_EQ(contents_after(*restored), contents_after(*as_it_is));
}

TEST_F(GraphNodes, RefuseAnAllocationThatIsNotFreedAndAFreeWithoutAllocation)
{
    const NativeGraph kept = graph(), freed = graph();
    CUgraphNode node = nullptr;
    CUDA_MEM_ALLOC_NODE_PARAMS params = allocation(4096);
    native.check(WARMGRAPH_FIND(cuGraphAddMemAllocNode)(&node, kept.get(), nullptr, 0, &params),
                 "cuGraphAddMemAllocNode");
    expect_refused(kept, "memory allocation (node 0)");
    native.check(WARMGRAPH_FIND(cuGraphAddMemFreeNode)(&node, freed.get(), nullptr, 0, params.dptr),
                 "cuGraphAddMemFreeNode");
    expect_refused(freed, "memory free (node 0)");
}

TEST_F(GraphNodes, RefuseCopiesOfArraysAndOfPageableMemory)
{
    CUDA_ARRAY_DESCRIPTOR shape{};
    shape.Width = 64;
    shape.Format = CU_AD_FORMAT_SIGNED_INT32;
    shape.NumChannels = 1;
    CUarray array = nullptr;
    native.check(WARMGRAPH_FIND(cuArrayCreate)(&array, &shape), "cuArrayCreate");
    CUgraphNode node = nullptr;
    const NativeGraph to_array = graph(), from_host = graph();
    CUDA_MEMCPY3D params = box(0, y, 256, 1, 1);
    params.dstMemoryType = CU_MEMORYTYPE_ARRAY;
    params.dstArray = array;
    native.check(driver.cuGraphAddMemcpyNode(&node, to_array.get(), nullptr, 0, &params, gpu.core.context),
                 "cuGraphAddMemcpyNode");
    expect_refused(to_array, "CUDA array");
    std::vector<int> pageable(64);
    params = box(y, 0, 256, 1, 1);
    params.srcMemoryType = CU_MEMORYTYPE_HOST;
    params.srcHost = pageable.data();
    native.check(driver.cuGraphAddMemcpyNode(&node, from_host.get(), nullptr, 0, &params, gpu.core.context),
                 "cuGraphAddMemcpyNode");
    expect_refused(from_host, "pageable host memory");
}

TEST_F(GraphNodes, RefuseConditionalNodes)
{
    const NativeGraph made = graph();
    add_touch(made.get(), y, 1);
    CUgraphConditionalHandle handle = 0;
    native.check(WARMGRAPH_FIND(cuGraphConditionalHandleCreate)(&handle, made.get(), gpu.core.context, 1, 0),
                 "cuGraphConditionalHandleCreate");
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    params.conditional.handle = handle;
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = gpu.core.context;
    CUgraphNode node = nullptr;
    native.check(WARMGRAPH_FIND(cuGraphAddNode)(&node, made.get(), nullptr, nullptr, 0, &params), "cuGraphAddNode");
    expect_refused(made, "conditional (node 1)");
}

TEST_F(GraphNodes, WaitForAndWriteSingleWords)
{
    const auto write = WARMGRAPH_FIND(cuStreamWriteValue32);
    const auto batch = WARMGRAPH_FIND(cuStreamBatchMemOp);
    CUstreamBatchMemOpParams operations[3]{};
    operations[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
    operations[0].waitValue.address = y + 4;
    operations[0].waitValue.value = 40;
    operations[0].waitValue.flags = CU_STREAM_WAIT_VALUE_GEQ;
    operations[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
    operations[1].writeValue.address = y + 16;
    operations[1].writeValue.value64 = 0x0000'0007'0000'0009;
    operations[2].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
    operations[2].writeValue.address = y + 24;
    operations[2].writeValue.value = 11;
    RawGraph raw = expect_same(capture([&] {
        touch(stream, y, 1);
        native.check(write(stream, y + 4, 41, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
        native.check(batch(stream, 3, operations, 0), "cuStreamBatchMemOp");
        touch(stream, y, 2);
    }));
    ASSERT_EQ(raw.nodes.size(), 4U);
    using enum MemoryOperationKind;
    const Address at = Address::from_flat(y);
    const RawMemoryOperations expected{
        {{wait_32, at + 4, 40, 0}, {write_64, at + 16, 0x0000'0007'0000'0009, 0}, {write_32, at + 24, 11, 0}}};
    EXPECT_EQ(std::get<RawMemoryOperations>(raw.nodes[1].work), (RawMemoryOperations{{{write_32, at + 4, 41, 0}}}));
    EXPECT_EQ(std::get<RawMemoryOperations>(raw.nodes[2].work), expected);
    // Updating an exec with another address and value must give the same as building an exec with them.
    const auto updated = take(make_exec(gpu.core, raw));
    auto& changed = std::get<RawMemoryOperations>(raw.nodes[2].work);
    changed.operations[1].address = at + 400;
    changed.operations[2].value = 12;
    ASSERT_TRUE(succeeded(updated->update(2, changed)));
    const auto built = take(make_exec(gpu.core, raw));
    EXPECT_EQ(contents_after(*updated), contents_after(*built));
    changed.operations[0].kind = write_32;
    EXPECT_TRUE(failed_with(updated->update(2, changed), ErrorCode::invalid_argument, "number, kinds or flags"));
}

} // namespace
} // namespace warmgraph::test::graph_nodes_test
