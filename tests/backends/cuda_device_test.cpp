// Tests, on a GPU, what the CUDA backend does beyond the conformance suite.
#include <algorithm>
#include <functional>
#include <numeric>
#include <set>

#include "expect_error.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::backends::test::cuda_device_test {
namespace {

constexpr const char* k_program = R"(
__device__ int counter = 5;
__constant__ float table[4] = {1, 2, 3, 4};
extern "C" __global__ void count(int* out) { out[0] = counter + static_cast<int>(table[3]); counter += 1; }
extern "C" __global__ void reverse(int* x, int n)
{
    extern __shared__ int words[];
    for (int i = threadIdx.x; i < n; i += blockDim.x) words[i] = x[i];
    __syncthreads();
    for (int i = threadIdx.x; i < n; i += blockDim.x) x[i] = words[n - 1 - i];
}
)";

class CudaDevice : public testing::Test {
protected:
    void SetUp() override
    {
        auto opened = take(make_cuda_backend()->open(environment("WARMGRAPH_TEST_CUDA").value_or("")));
        device = opened;
        auto made = take(device->create_stream());
        stream = std::move(made);
    }
    std::vector<std::uint8_t> read(const Address& from, std::size_t size)
    {
        std::vector<std::uint8_t> bytes(size);
        EXPECT_TRUE(succeeded(stream->synchronize()));
        EXPECT_TRUE(succeeded(device->download(std::as_writable_bytes(std::span(bytes)), from)));
        return bytes;
    }
    static RawParam pointer(const Address& address) { return {ParamKind::memory, {}, address, 0}; }

    std::shared_ptr<Device> device;
    std::unique_ptr<Stream> stream;
};

TEST_F(CudaDevice, TellsHostMemoryFromTheDevices)
{
    const MemoryRef host = take(device->allocate_host(1000)), here = take(device->allocate(1000));
    EXPECT_EQ(device->space_of(host.address + 10), MemorySpace::host);
    EXPECT_EQ(device->space_of(here.address + 10), MemorySpace::device);
    EXPECT_EQ(device->recording().allocation_at(host.address.flat() + 999), std::optional(host));
    EXPECT_EQ(device->recording().allocation_at(1), std::nullopt);
    const std::vector<std::byte> bytes(1000, std::byte{7});
    ASSERT_TRUE(succeeded(device->upload(host.address, bytes)));
    EXPECT_EQ(*host.address.pointer<std::uint8_t>(), 7); // the host must see it, too
    RawCopy down{host.address, here.address, 1000};
    down.source_space = MemorySpace::host;
    ASSERT_TRUE(succeeded(stream->copy(down)));
    EXPECT_EQ(read(here.address, 1000), std::vector<std::uint8_t>(1000, 7));
    device->release(host);
    device->release(here);
    EXPECT_EQ(device->recording().allocation_at(host.address.flat()), std::nullopt);
}

TEST_F(CudaDevice, GivesShadowsThatNeverTouchAndCostNothing)
{
    constexpr std::uint64_t k_size = 3ULL << 30;
    std::vector<MemoryRef> shadows;
    for (int i = 0; i < 64; ++i)
        shadows.push_back(take(device->reserve_shadow(k_size + static_cast<std::uint64_t>(i))));
    EXPECT_GT(64 * k_size, device->limits().memory);
    std::ranges::sort(shadows);
    for (std::size_t i = 1; i < shadows.size(); ++i)
        EXPECT_GT(shadows[i].address.flat(), shadows[i - 1].address.flat() + shadows[i - 1].size);
    for (const MemoryRef& shadow : shadows) {
        EXPECT_EQ(device->recording().allocation_at(shadow.address.flat()), std::nullopt);
        device->release(shadow);
    }
    const MemoryRef again = take(device->reserve_shadow(1));
    device->release(again);
}

TEST_F(CudaDevice, GivesShadowsUpperHalvesOfAddressesThatNothingElseHas)
{
    const MemoryRef here = take(device->allocate(1000)), host = take(device->allocate_host(1000));
    std::set<std::uint64_t> taken;
    for (const MemoryRef& memory : {here, host}) taken.insert(memory.address.flat() >> 32U);
    std::vector<MemoryRef> shadows;
    for (int i = 0; i < 50; ++i) {
        shadows.push_back(
            take(i % 5 == 0 ? device->recording().reserve_host_shadow(5000) : device->reserve_shadow(3U << 20U)));
        EXPECT_TRUE(taken.insert(shadows.back().address.flat() >> 32U).second)
            << fmt::format("{:#x}", shadows.back().address.flat());
    }
    EXPECT_EQ(device->recording().host_memory_at(shadows[0].address.flat()), std::nullopt);
    for (const MemoryRef& memory : shadows) device->release(memory);
    device->release(here);
    device->release(host);
}

TEST_F(CudaDevice, AWatchTellsWorkThatACaptureWouldNotHold)
{
    ASSERT_TRUE(succeeded(device->recording().prepare_recording()));
    const MemoryRef x = take(device->allocate(1000));
    const RawFill fill{x.address, Bytes(1), 1000};
    const auto other = take(device->create_stream());
    const auto exec = take(device->instantiate({{{fill, {}}}}));
    const auto stray = [&](const std::function<Result<void>()>& work) {
        const auto watch = take(device->recording().watch_enqueues(*stream));
        EXPECT_TRUE(succeeded(work()));
        EXPECT_FALSE(watch->waits_outside());
        return watch->stray().value_or("");
    };
    EXPECT_EQ(stray([&] { return stream->fill(fill); }), "");
    EXPECT_TRUE(stray([&] { return other->fill(fill); }).starts_with("cuMemsetD8Async in another stream (0x"));
    EXPECT_EQ(stray([&] { return exec->launch(*stream); }), "cuGraphLaunch of a graph");
    EXPECT_EQ(stray([&] { return stream->synchronize(); }), "cuStreamSynchronize, which synchronises");
    EXPECT_EQ(stray([&] { return device->upload(x.address, Bytes(1000)); }), "");
    ASSERT_TRUE(succeeded(other->synchronize()));
    device->release(x);
}

TEST_F(CudaDevice, RaisesTheLimitOfSharedMemory)
{
    constexpr std::int32_t k_numbers = 20000; // 80,000 bytes; a launch with more than 49,152 needs a function attribute
    const auto module = take(device->compiler().compile(k_program, ""));
    std::vector<std::int32_t> numbers(k_numbers);
    std::iota(numbers.begin(), numbers.end(), 0);
    const MemoryRef x = take(device->allocate(numbers.size() * sizeof(std::int32_t)));
    ASSERT_TRUE(succeeded(device->upload(x.address, std::as_bytes(std::span(numbers)))));
    RawParam count;
    append(count.value, k_numbers);
    RawKernel work{module.get(), "reverse", {1, 1, 1}, {256, 1, 1}, {pointer(x.address), count}};
    work.shared_bytes = k_numbers * sizeof(std::int32_t);
    ASSERT_TRUE(succeeded(stream->launch(work)));
    ASSERT_TRUE(succeeded(stream->synchronize()));
    ASSERT_TRUE(succeeded(device->download(std::as_writable_bytes(std::span(numbers)), x.address)));
    EXPECT_EQ(numbers.front(), k_numbers - 1);
    EXPECT_EQ(numbers.back(), 0);
    device->release(x);
}

TEST_F(CudaDevice, FindsChangedVariablesAndWritesThem)
{
    const auto module = take(device->compiler().compile(k_program, ""));
    EXPECT_EQ(take(module->changed_variables()).size(), 0U);
    const MemoryRef out = take(device->allocate(4));
    const RawKernel count{module.get(), "count", {1, 1, 1}, {1, 1, 1}, {pointer(out.address)}};
    ASSERT_TRUE(succeeded(stream->launch(count)));
    EXPECT_EQ(read(out.address, 1)[0], 9);
    const auto changed = take(module->changed_variables());
    ASSERT_EQ(changed.size(), 1U);
    EXPECT_EQ(changed[0].name, "counter");
    EXPECT_EQ(load<std::int32_t>(changed[0].contents), 6);

    const auto again = take(device->load(take(module->image())));
    ASSERT_TRUE(succeeded(again->write_variables(changed)));
    RawKernel same = count;
    same.module = again.get();
    ASSERT_TRUE(succeeded(stream->launch(same)));
    EXPECT_EQ(read(out.address, 1)[0], 10);
    const std::vector<cachefmt::ModuleVariable> shorter{{"counter", Bytes(3)}}, unknown{{"absent", Bytes(4)}};
    EXPECT_TRUE(failed_with(again->write_variables(shorter), ErrorCode::invalid_argument, "4 bytes"));
    EXPECT_TRUE(failed_with(again->write_variables(unknown), ErrorCode::not_found, "absent"));
    device->release(out);
}

TEST_F(CudaDevice, CutsAnImageToTheKernelsInUse)
{
    const auto module = take(device->compiler().compile(k_program, ""));
    const std::vector<std::string> used{"reverse"};
    const Bytes cut = take(module->image_of(used));
    EXPECT_LE(cut.size(), take(module->image()).size());
    const auto loaded = take(device->load(cut));
    EXPECT_EQ(take(loaded->param_count("reverse")), 2U);
}

TEST_F(CudaDevice, SaysThatAnImageIsForAnotherArchitecture)
{
    // Code for sm_75 can be compiled, but loading it must fail.
    const auto other = device->compiler().compile(k_program, "--gpu-architecture=sm_75");
    EXPECT_TRUE(failed_with(other, ErrorCode::stale, "it is for sm_75, the device is sm_"));
}

TEST_F(CudaDevice, FillsAndCopiesBoxes)
{
    const MemoryRef x = take(device->allocate(1024)), y = take(device->allocate(1024));
    for (const MemoryRef& memory : {x, y}) ASSERT_TRUE(succeeded(stream->fill({memory.address, Bytes(1), 1024})));
    Bytes pattern;
    append(pattern, std::uint64_t{0x0807060504030201});
    RawFill rows{x.address + 8, pattern, 16};
    rows.rows = 3;
    rows.pitch = 64;
    ASSERT_TRUE(succeeded(stream->fill(rows)));
    RawCopy box{x.address + 8, y.address, 16};
    box.rows = 3;
    box.source_pitch.row = 64;
    box.destination_pitch.row = 32;
    ASSERT_TRUE(succeeded(stream->copy(box)));
    const auto in_x = read(x.address, 1024), in_y = read(y.address, 1024);
    for (std::size_t i = 0; i < 1024; ++i) {
        const bool in_row = i < 192 && i % 64 >= 8 && i % 64 < 24;
        ASSERT_EQ(in_x[i], in_row ? i % 8 + 1 : 0) << i;
        const bool copied = i < 96 && i % 32 < 16;
        ASSERT_EQ(in_y[i], copied ? i % 8 + 1 : 0) << i;
    }
    rows.rows = 100;
    EXPECT_TRUE(failed_with(stream->fill(rows), ErrorCode::invalid_argument, "1024"));
    box.source_pitch.row = 8;
    EXPECT_TRUE(failed_with(stream->copy(box), ErrorCode::invalid_argument, "row pitch"));
    device->release(x);
    device->release(y);
}

TEST_F(CudaDevice, GivesEventsThatGraphsCanHold)
{
    const auto event = take(device->create_event());
    EXPECT_NE(event->native(), 0U);
    EXPECT_TRUE(succeeded(stream->wait(event))); // the event was never recorded, so wait() returns at once
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    EXPECT_TRUE(succeeded(stream->wait(event)));
    const auto graph = take(stream->end_capture());
    ASSERT_EQ(graph.nodes.size(), 1U);
    EXPECT_EQ(std::get<RawEventWait>(graph.nodes[0].work).event, event->native());
}

TEST_F(CudaDevice, AllocatesAndUploadsWhileItCaptures)
{
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    const MemoryRef x = take(device->allocate(64));
    EXPECT_TRUE(succeeded(device->upload(x.address, std::vector<std::byte>(64, std::byte{3}))));
    EXPECT_TRUE(succeeded(stream->fill({x.address, Bytes(1), 32})));
    EXPECT_EQ(take(stream->end_capture()).nodes.size(), 1U);
    EXPECT_EQ(read(x.address, 64), std::vector<std::uint8_t>(64, 3));
    device->release(x);
}

} // namespace
} // namespace warmgraph::backends::test::cuda_device_test
