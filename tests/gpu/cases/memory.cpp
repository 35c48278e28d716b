// Cases with copies, fills, allocations, host functions, and waits and writes of words; also with objects that a new
// process cannot have.
#include <atomic>

#include "../case.hpp"

namespace warmgraph::test {

namespace {

constexpr std::int64_t k_count = 64 * 1024;

std::vector<Memory> one_to_one()
{
    return {{"x", Memory::Kind::input, f32, k_count}, {"y", Memory::Kind::state, f32, k_count}};
}

Case copies_in_three_dimensions()
{
    return {.name = "copies_in_one_two_and_three_dimensions", .memory = one_to_one(), .work = [](Recorder& r) {
                const Native& native = Native::instance();
                CUstream stream = native_stream(r.stream());
                r.stream().copy(r["y"], r["x"] + 1000, 5000);
                CUDA_MEMCPY3D box{};
                box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
                box.srcDevice = r["x"].flat();
                box.dstDevice = r["y"].flat();
                box.srcPitch = 512;
                box.dstPitch = 1024;
                box.srcXInBytes = 16;
                box.srcY = 3;
                box.dstY = 20;
                box.WidthInBytes = 300;
                box.Height = 17;
                box.Depth = 1;
                box.srcHeight = box.dstHeight = 40;
                native.check(native.driver().cuMemcpy3DAsync(&box, stream), "cuMemcpy3DAsync");
                box.Height = 5;
                box.Depth = 4;
                box.srcZ = 1;
                box.dstZ = 2;
                native.check(native.driver().cuMemcpy3DAsync(&box, stream), "cuMemcpy3DAsync");
                native.check(native.driver().cuMemsetD2D16Async(r["y"].flat() + 200'000, 256, 0x1234, 20, 9, stream),
                             "cuMemsetD2D16Async");
                native.check(native.driver().cuMemsetD32Async(r["y"].flat() + 220'000, 0x3F800000, 100, stream),
                             "cuMemsetD32Async");
            }};
}

/// The captured work allocates and frees memory in stream order. In the entry, this memory becomes a part of the arena.
Case stream_ordered_allocation()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void twice(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = 2 * x[i]; })");
    return {.name = "stream_ordered_allocation", .memory = one_to_one(), .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                CUstream stream = native_stream(r.stream());
                const auto allocate = native.find<decltype(&cuMemAllocAsync)>("cuMemAllocAsync");
                const auto release = native.find<decltype(&cuMemFreeAsync)>("cuMemFreeAsync");
                CUdeviceptr between = 0;
                native.check(allocate(&between, k_count * 4, stream), "cuMemAllocAsync");
                void *x = r["x"].pointer(), *y = r["y"].pointer(), *t = Address::from_flat(between).pointer();
                native.launch(stream, (*code)["twice"], k_count / 256, 256, {&x, &t});
                native.launch(stream, (*code)["twice"], k_count / 256, 256, {&t, &y});
                native.check(release(between, stream), "cuMemFreeAsync");
            }};
}

std::atomic<int>& counter()
{
    static std::atomic<int> instance{0};
    return instance;
}
void count(void* data) { static_cast<std::atomic<int>*>(data)->fetch_add(1); }

Case host_function_by_name()
{
    // Every process registers the function, even one that only replays, because the entry has only the function's name.
    register_host_function("count", count, &counter());
    return {.name = "host_function_by_name", .memory = one_to_one(), .work = [](Recorder& r) {
                const Native& native = Native::instance();
                r.stream().copy(r["y"], r["x"], k_count * 4);
                const auto launch = native.find<decltype(&cuLaunchHostFunc)>("cuLaunchHostFunc");
                native.check(launch(native_stream(r.stream()), count, &counter()), "cuLaunchHostFunc");
                r.stream().copy(r["y"] + 4, r["x"], 400);
            }};
}

/// Between two kernels, the stream writes words and waits for words.
Case memory_operations()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void step(const float* x, float* y, unsigned* flags) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = x[i] * flags[1];
    if (i == 0) flags[2] = flags[1] + 4;
}
extern "C" __global__ void finish(float* y, const unsigned* flags) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    y[i] = y[i] * flags[4] + flags[5];
})");
    std::vector<Memory> memory = one_to_one();
    memory.push_back({"flags", Memory::Kind::state, i32, 64});
    return {.name = "memory_operations", .memory = memory, .work = [code](Recorder& r) {
                const Native& native = Native::instance();
                CUstream stream = native_stream(r.stream());
                const auto write = native.find<decltype(&cuStreamWriteValue32)>("cuStreamWriteValue32");
                const auto batch = native.find<decltype(&cuStreamBatchMemOp)>("cuStreamBatchMemOp");
                const CUdeviceptr flags = r["flags"].flat();
                void *x = r["x"].pointer(), *y = r["y"].pointer(), *words = r["flags"].pointer();
                native.check(write(stream, flags + 4, 3, CU_STREAM_WRITE_VALUE_DEFAULT), "cuStreamWriteValue32");
                native.launch(stream, (*code)["step"], k_count / 256, 256, {&x, &y, &words});
                CUstreamBatchMemOpParams operations[2]{};
                operations[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
                operations[0].waitValue.address = flags + 8;
                operations[0].waitValue.value = 7; // `step` writes this value
                operations[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
                operations[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
                operations[1].writeValue.address = flags + 16;
                operations[1].writeValue.value64 = 0x0000'0005'0000'0002;
                native.check(batch(stream, 2, operations, 0), "cuStreamBatchMemOp");
                native.launch(stream, (*code)["finish"], k_count / 256, 256, {&y, &words});
            }};
}

/// y = x + the texture's value. The assembly is that of tex1Dfetch, so that NVRTC needs no header.
constexpr const char* k_fetch = R"(
extern "C" __global__ void fetch(const float* x, float* y, unsigned long long texture) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    float a, b, c, d;
    asm volatile("tex.1d.v4.f32.s32 {%0, %1, %2, %3}, [%4, {%5}];"
                 : "=f"(a), "=f"(b), "=f"(c), "=f"(d) : "l"(texture), "r"(i));
    y[i] = x[i] + a;
})";

/// A texture over linear memory of its own, with the contents start, start + step, ...
CUtexObject make_texture(float start, float step)
{
    const Native& native = Native::instance();
    std::vector<float> contents(k_count);
    for (std::size_t i = 0; i < contents.size(); ++i) contents[i] = start + step * static_cast<float>(i);
    CUDA_RESOURCE_DESC resource{};
    resource.resType = CU_RESOURCE_TYPE_LINEAR;
    resource.res.linear.format = CU_AD_FORMAT_FLOAT;
    resource.res.linear.numChannels = 1;
    resource.res.linear.sizeInBytes = k_count * 4;
    native.check(native.driver().cuMemAlloc(&resource.res.linear.devPtr, k_count * 4), "cuMemAlloc");
    native.check(native.driver().cuMemcpy(resource.res.linear.devPtr, reinterpret_cast<CUdeviceptr>(contents.data()),
                                          k_count * 4),
                 "cuMemcpy");
    native.check(native.driver().cuCtxSynchronize(), "cuCtxSynchronize"); // readers do not wait for it
    const CUDA_TEXTURE_DESC how{};
    CUtexObject made = 0;
    native.check(native.find<decltype(&cuTexObjectCreate)>("cuTexObjectCreate")(&made, &resource, &how, nullptr),
                 "cuTexObjectCreate");
    return made;
}

void fetch(Recorder& r, LazyModule& code, std::uint64_t texture)
{
    void *x = r["x"].pointer(), *y = r["y"].pointer();
    Native::instance().launch(native_stream(r.stream()), code["fetch"], k_count / 256, 256, {&x, &y, &texture});
}

/// A texture's handle, which is invalid in another process.
Case texture_object()
{
    auto code = std::make_shared<LazyModule>(k_fetch);
    auto texture = std::make_shared<CUtexObject>(0);
    return {.name = "texture_object",
            .memory = one_to_one(),
            .work =
                [code, texture](Recorder& r) {
                    if (*texture == 0) *texture = make_texture(0, 0);
                    fetch(r, *code, *texture);
                },
            .expected = Outcome::refused,
            .refusal = "texture"};
}

/// Each process passes its own texture handle. The recorded handle also exists in the replaying process, but for other
/// contents: a replay that used the recorded handle would give wrong results.
Case texture_by_its_handle()
{
    auto code = std::make_shared<LazyModule>(k_fetch);
    return {.name = "texture_by_its_handle",
            .memory = one_to_one(),
            .scalars = {scalar("texture", u64)},
            .own_scalars =
                [](Mode mode) {
                    if (mode == Mode::replay) {
                        static_cast<void>(make_texture(-7, 0));
                        static_cast<void>(make_texture(100, 0.5F));
                    }
                    return std::vector<Arg>{{"texture", make_texture(1, 0.25F)}};
                },
            .work = [code](Recorder& r) { fetch(r, *code, r.scalar<std::uint64_t>("texture")); }};
}

/// Adds a conditional node around the kernel to the graph that the stream captures.
void capture_conditionally(CUstream stream, CUgraph graph, const CUgraphNode* before, std::size_t count,
                           CUDA_KERNEL_NODE_PARAMS kernel)
{
    const Native& native = Native::instance();
    CUcontext context = nullptr;
    native.check(native.driver().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    CUgraphNodeParams params{};
    params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
    const auto create = native.find<decltype(&cuGraphConditionalHandleCreate)>("cuGraphConditionalHandleCreate");
    native.check(create(&params.conditional.handle, graph, context, 1, CU_GRAPH_COND_ASSIGN_DEFAULT),
                 "cuGraphConditionalHandleCreate");
    params.conditional.type = CU_GRAPH_COND_TYPE_IF;
    params.conditional.size = 1;
    params.conditional.ctx = context;
    CUgraphNode node = nullptr, inside = nullptr;
    native.check(
        native.find<decltype(&cuGraphAddNode)>("cuGraphAddNode")(&node, graph, before, nullptr, count, &params),
        "cuGraphAddNode");
    native.check(native.driver().cuGraphAddKernelNode(&inside, params.conditional.phGraph_out[0], nullptr, 0, &kernel),
                 "cuGraphAddKernelNode");
    const auto update = native.find<decltype(&cuStreamUpdateCaptureDependencies)>("cuStreamUpdateCaptureDependencies");
    native.check(update(stream, &node, nullptr, 1, CU_STREAM_SET_CAPTURE_DEPENDENCIES),
                 "cuStreamUpdateCaptureDependencies");
}

/// A conditional node: the driver does not let a program read its condition and its bodies.
Case conditional_node()
{
    auto code = std::make_shared<LazyModule>(R"(
extern "C" __global__ void twice(const float* x, float* y) { int i = blockIdx.x * 256 + threadIdx.x; y[i] = 2 * x[i]; })");
    return {.name = "conditional_node",
            .memory = one_to_one(),
            .work =
                [code](Recorder& r) {
                    const Native& native = Native::instance();
                    CUstream stream = native_stream(r.stream());
                    r.stream().copy(r["y"], r["x"], 4096);
                    void *x = r["x"].pointer(), *y = r["y"].pointer();
                    void* arguments[] = {&x, &y};
                    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
                    CUgraph graph = nullptr;
                    const CUgraphNode* before = nullptr;
                    std::size_t count = 0;
                    const auto ask = native.find<decltype(&cuStreamGetCaptureInfo)>("cuStreamGetCaptureInfo");
                    native.check(ask(stream, &status, nullptr, &graph, &before, nullptr, &count),
                                 "cuStreamGetCaptureInfo");
                    if (status != CU_STREAM_CAPTURE_STATUS_ACTIVE)
                        return native.launch(stream, (*code)["twice"], k_count / 256, 256, {&x, &y});
                    CUDA_KERNEL_NODE_PARAMS kernel{};
                    kernel.func = (*code)["twice"];
                    kernel.gridDimX = k_count / 256;
                    kernel.blockDimX = 256;
                    kernel.gridDimY = kernel.gridDimZ = kernel.blockDimY = kernel.blockDimZ = 1;
                    kernel.kernelParams = static_cast<void**>(arguments);
                    capture_conditionally(stream, graph, before, count, kernel);
                },
            .expected = Outcome::refused,
            .refusal = "conditional (node "};
}

} // namespace

void add_memory_cases(std::vector<std::pair<std::string, MakeCase>>& all)
{
    all.emplace_back("copies_in_one_two_and_three_dimensions", copies_in_three_dimensions);
    all.emplace_back("stream_ordered_allocation", stream_ordered_allocation);
    all.emplace_back("host_function_by_name", host_function_by_name);
    all.emplace_back("memory_operations", memory_operations);
    all.emplace_back("texture_object", texture_object);
    all.emplace_back("texture_by_its_handle", texture_by_its_handle);
    all.emplace_back("conditional_node", conditional_node);
}

} // namespace warmgraph::test
