// Tests with graphs that the driver's own API made or captured. The backend's parts read these graphs and build them
// again.
#pragma once

#include <functional>
#include <memory>
#include <numeric>
#include <vector>

#include "code/module.hpp"
#include "device/backend.hpp"
#include "device/memory.hpp"
#include "device/stream.hpp"
#include "expect_error.hpp"
#include "graph/graph_builder.hpp"
#include "graph/graph_exec.hpp"
#include "graph/graph_reader.hpp"
#include "native.hpp"

namespace warmgraph::test {

using namespace backends; // NOLINT: these tests are about what is in it
using cuda::NativeGraph;

inline constexpr unsigned k_count = 1U << 12; ///< number of elements of a test's memory
inline constexpr unsigned k_block = 128;

inline constexpr const char* k_kernels = R"(
extern "C" __global__ void touch(int* y, int n, int add) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = 3 * y[i] + add + i % 7;
}
extern "C" __global__ void reset_one(int* y) { y[0] = 1; }
extern "C" __global__ void far_shared(int* y, int n, int words) {
    extern __shared__ int room[];
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    room[words - 1 - threadIdx.x] = i;
    __syncthreads();
    if (i < n) y[i] += room[words - blockDim.x + threadIdx.x];
}
struct Big { int values[2000]; };
extern "C" __global__ void big(int* y, int n, Big table, int add) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += table.values[i % 2000] + add;
}
extern "C" __global__ void first_of_pair(int* y, int n) {
    asm volatile("griddepcontrol.launch_dependents;");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] += 5;
}
extern "C" __global__ void second_of_pair(int* y, int n) {
    asm volatile("griddepcontrol.wait;" ::: "memory");
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] *= 2;
}
)";

/// The device for all tests of a process, because making a context takes 0.2 s.
class Gpu {
public:
    static Gpu& instance()
    {
        static Gpu gpu;
        return gpu;
    }

    cuda::Core core;
    std::unique_ptr<cuda::Memory> memory;
    std::unique_ptr<cuda::CudaModule> module;

private:
    Gpu()
    {
        const Native& native = Native::instance(); // makes the primary context current
        const char* const named = std::getenv("WARMGRAPH_CUDA_DRIVER");
        core.recording_side = &cuda::recording_side();
        core.driver = take(Driver::load(named != nullptr ? named : "libcuda.so.1"));
        native.check(core.driver->cuCtxGetCurrent(&core.context), "cuCtxGetCurrent");
        const auto attribute = [&](CUdevice_attribute id) {
            int value = 0;
            native.check(core.driver->cuDeviceGetAttribute(&value, id, core.device), "cuDeviceGetAttribute");
            return value;
        };
        core.compute_major = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
        core.compute_minor = attribute(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
        native.check(core.driver->cuCtxGetLimit(&core.malloc_heap, CU_LIMIT_MALLOC_HEAP_SIZE), "cuCtxGetLimit");
        core.transfers = native.stream();
        memory = std::make_unique<cuda::Memory>(core);
        module = take(cuda::CudaModule::compile(core, k_kernels, ""));
    }
};

/// Makes a builder in the same way as Device::instantiate, but without a device.
inline Result<std::unique_ptr<cuda::CudaGraphBuilder>> builder_of(cuda::Core& core, const RawGraph& raw)
{
    auto builder = cuda::CudaGraphBuilder::begin(core, raw.nodes.size());
    if (!builder) return builder;
    for (const auto& node : raw.nodes)
        if (auto added = (*builder)->add(node); !added) return std::unexpected(added.error());
    return builder;
}
inline Result<cuda::BuiltGraph> build_graph(cuda::Core& core, const RawGraph& raw)
{
    auto builder = builder_of(core, raw);
    if (!builder) return std::unexpected(builder.error());
    return (*builder)->finish();
}
inline Result<std::unique_ptr<backends::GraphExec>> make_exec(cuda::Core& core, const RawGraph& raw)
{
    auto builder = builder_of(core, raw);
    if (!builder) return std::unexpected(builder.error());
    return (*builder)->instantiate();
}

class GraphTest : public testing::Test {
protected:
    GraphTest() : gpu(Gpu::instance()), native(Native::instance()), driver(native.driver()), stream(native.stream())
    {
        y = allocate();
        exec_stream = take(cuda::CudaStream::make(gpu.core, *gpu.memory));
    }
    ~GraphTest() override
    {
        static_cast<void>(driver.cuCtxSynchronize());
        for (const CUdeviceptr address : m_memory) static_cast<void>(driver.cuMemFree(address));
    }

    CUdeviceptr allocate(std::size_t bytes = k_count * sizeof(int))
    {
        CUdeviceptr address = 0;
        native.check(driver.cuMemAlloc(&address, bytes), "cuMemAlloc");
        m_memory.push_back(address);
        return address;
    }
    [[nodiscard]] CUfunction function(const char* name) const { return take(gpu.module->info(name))->function; }

    NativeGraph graph() const
    {
        NativeGraph made(driver);
        native.check(driver.cuGraphCreate(made.out(), 0), "cuGraphCreate");
        return made;
    }
    NativeGraph capture(const std::function<void()>& work) const
    {
        NativeGraph captured(driver);
        native.check(driver.cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL), "cuStreamBeginCapture");
        work();
        native.check(driver.cuStreamEndCapture(stream, captured.out()), "cuStreamEndCapture");
        return captured;
    }
    void touch(CUstream where, CUdeviceptr memory, int add, std::vector<CUlaunchAttribute> attributes = {}) const
    {
        int count = k_count;
        native.launch(where, function("touch"), k_count / k_block, k_block, {&memory, &count, &add}, 0,
                      std::move(attributes));
    }
    CUgraphNode add_touch(CUgraph to, CUdeviceptr memory, int add, std::vector<CUgraphNode> after = {}) const
    {
        int count = k_count;
        void* params[] = {&memory, &count, &add};
        CUDA_KERNEL_NODE_PARAMS node{};
        node.func = function("touch");
        node.gridDimX = k_count / k_block;
        node.gridDimY = node.gridDimZ = 1;
        node.blockDimX = k_block;
        node.blockDimY = node.blockDimZ = 1;
        node.kernelParams = static_cast<void**>(params);
        CUgraphNode made = nullptr;
        native.check(driver.cuGraphAddKernelNode(&made, to, after.data(), after.size(), &node), "cuGraphAddKernelNode");
        return made;
    }

    RawGraph read(const NativeGraph& from) const { return take(cuda::read_graph(gpu.core, from.get())); }

    std::vector<int> contents_after(GraphExec& exec) const
    {
        std::vector<int> values(k_count);
        std::iota(values.begin(), values.end(), -100);
        native.check(driver.cuMemcpy(y, reinterpret_cast<CUdeviceptr>(values.data()), k_count * 4), "cuMemcpy");
        const auto launched = exec.launch(*exec_stream);
        EXPECT_TRUE(succeeded(launched));
        EXPECT_TRUE(succeeded(exec_stream->synchronize()));
        native.check(driver.cuMemcpy(reinterpret_cast<CUdeviceptr>(values.data()), y, k_count * 4), "cuMemcpy");
        return values;
    }

    /// Reads the graph, builds it, and reads the built graph. Expects that both readings are the same, and returns the
    /// reading.
    RawGraph expect_read_back(const NativeGraph& original) const
    {
        RawGraph first = read(original);
        const cuda::BuiltGraph built = take(build_graph(gpu.core, first));
        const RawGraph second = read(built.graph);
        EXPECT_EQ(second.nodes.size(), first.nodes.size());
        for (std::size_t i = 0; i < std::min(first.nodes.size(), second.nodes.size()); ++i)
            EXPECT_TRUE(second.nodes[i] == first.nodes[i]) << "node " << i;
        return first;
    }
    /// The same as expect_read_back(), and expects that the original and the built graph change `y` in the same way.
    RawGraph expect_same(const NativeGraph& original) const
    {
        RawGraph raw = expect_read_back(original);
        const auto as_it_is = take(cuda::CudaGraphExec::adopt(gpu.core, original.get()));
        const auto restored = take(make_exec(gpu.core, raw));
        const std::vector<int> expected = contents_after(*as_it_is);
        EXPECT_NE(expected[k_count / 2], static_cast<int>(k_count / 2) - 100) << "the graph does nothing";
        EXPECT_EQ(contents_after(*restored), expected);
        return raw;
    }
    void expect_refused(const NativeGraph& original, const std::string& why) const
    {
        EXPECT_TRUE(failed_with(cuda::read_graph(gpu.core, original.get()), ErrorCode::not_recordable, why));
    }

    Gpu& gpu;
    const Native& native;
    const Driver& driver;
    CUstream stream;
    CUdeviceptr y = 0;
    std::unique_ptr<Stream> exec_stream;

private:
    std::vector<CUdeviceptr> m_memory;
};

} // namespace warmgraph::test
