// External semaphores that are shared with another API: Vulkan's timelines, which the host signals and reads.
#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "cache_options.hpp"
#include "expect_error.hpp"
#include "lacking.hpp"
#include "native.hpp"
#include "temp_dir.hpp"
#include "vulkan_timeline.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::semaphores_test {
namespace {

using std::int32_t;

constexpr const char* k_kernels = R"(
extern "C" __global__ void add(const int* x, int* y, int n, int more) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = x[i] + more;
})";
constexpr int32_t k_count = 1000;
constexpr std::uint64_t k_bytes = k_count * 4;
constexpr Launch k_launch{.grid = {8, 1, 1}, .block = {128, 1, 1}};

std::array<std::byte, 16> identity_of_device()
{
    const Native& native = Native::instance();
    CUdevice device = 0;
    CUuuid uuid{};
    native.check(native.driver().cuDeviceGet(&device, 0), "cuDeviceGet");
    native.check(native.driver().cuDeviceGetUuid(&uuid, device), "cuDeviceGetUuid");
    std::array<std::byte, 16> bytes{};
    std::memcpy(bytes.data(), uuid.bytes, bytes.size());
    return bytes;
}

/// A timeline of Vulkan, and CUDA's handle for it.
class Shared {
public:
    Shared(Vulkan& vulkan, std::uint64_t value) : m_timeline(take(vulkan.timeline(value)))
    {
        CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC description{};
        description.type = CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;
        description.handle.fd = take(m_timeline->export_fd());
        const auto import = m_native.find<decltype(&::cuImportExternalSemaphore)>("cuImportExternalSemaphore");
        m_native.check(import(&m_handle, &description), "cuImportExternalSemaphore");
    }
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;
    ~Shared()
    {
        static_cast<void>(
            m_native.find<decltype(&::cuDestroyExternalSemaphore)>("cuDestroyExternalSemaphore")(m_handle));
    }
    [[nodiscard]] CUexternalSemaphore handle() const noexcept { return m_handle; }
    [[nodiscard]] std::uint64_t value() const { return take(m_timeline->value()); }
    void signal(std::uint64_t value) { take(m_timeline->signal(value)); }
    /// Enqueues a wait, as a library or an application does.
    void enqueue_wait(std::uint64_t value, void* stream) const
    {
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS params{};
        params.params.fence.value = value;
        const auto wait = m_native.find<decltype(&::cuWaitExternalSemaphoresAsync)>("cuWaitExternalSemaphoresAsync");
        m_native.check(wait(&m_handle, &params, 1, static_cast<CUstream>(stream)), "cuWaitExternalSemaphoresAsync");
    }
    void enqueue_signal(std::uint64_t value, void* stream) const
    {
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS params{};
        params.params.fence.value = value;
        const auto signal =
            m_native.find<decltype(&::cuSignalExternalSemaphoresAsync)>("cuSignalExternalSemaphoresAsync");
        m_native.check(signal(&m_handle, &params, 1, static_cast<CUstream>(stream)), "cuSignalExternalSemaphoresAsync");
    }

private:
    const Native& m_native = Native::instance();
    std::unique_ptr<VulkanTimeline> m_timeline;
    CUexternalSemaphore m_handle = nullptr;
};

class GpuSemaphores : public testing::Test {
protected:
    void SetUp() override
    {
        auto opened = Vulkan::open(identity_of_device());
        if (!opened) WARMGRAPH_SKIP_LACKING(opened.error().message);
        vulkan = std::move(*opened);
    }
    [[nodiscard]] CacheOptions options() const { return cache_options("semaphores", dir.path() / "cache"); }
    [[nodiscard]] Spec spec(const Shared& ready, const Shared& shown) const
    {
        Spec result = x_to_y(i32, k_count);
        result.scalars = {scalar("frame", u64, 0, 1'000'000)};
        result.version = "1";
        result.code = {program};
        result.semaphores = {{"ready", ready.handle()}, {"shown", shown.handle()}};
        return result;
    }
    /// The function waits until the frame is ready, computes y = x + 1, and signals that the frame may be shown.
    [[nodiscard]] Function wrap(Cache& cache, const Shared& ready, const Shared& shown) const
    {
        return cache.wrap("frame", device, spec(ready, shown), [this, &ready, &shown](Recorder& r) {
            const auto frame = r.scalar<std::uint64_t>("frame");
            ready.enqueue_wait(frame, r.stream().native());
            r.stream().launch(program, "add", k_launch, r["x"], r["y"], k_count, int32_t{1});
            shown.enqueue_signal(frame, r.stream().native());
        });
    }
    [[nodiscard]] Buffer numbers(int32_t first) const { return device.upload<int32_t>(counting(first)); }
    [[nodiscard]] static std::vector<int32_t> counting(int32_t first)
    {
        std::vector<int32_t> values(k_count);
        std::iota(values.begin(), values.end(), first);
        return values;
    }
    void expect_call(Function& f, Shared& ready, const Shared& shown, std::uint64_t frame, Outcome outcome) const
    {
        ready.signal(frame);
        const auto first = static_cast<int32_t>(frame);
        const Buffer x = numbers(first), y = numbers(0);
        EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", frame}}), outcome) << f.report().reason;
        device.synchronize();
        EXPECT_EQ(y.read<int32_t>(), counting(first + 1));
        EXPECT_EQ(shown.value(), frame);
    }
    TempDir dir;
    std::shared_ptr<Vulkan> vulkan;
    Device device{"cuda:0"};
    Program program = device.program("add", k_kernels);
};

TEST_F(GpuSemaphores, AreMetOncePerCallWhetherItIsRecordedOrReplayedElsewhere)
{
    device.prepare_recording();
    {
        Shared ready{*vulkan, 5}, shown{*vulkan, 0};
        Cache cache{options()};
        Function f = wrap(cache, ready, shown);
        // A signal during recording would have the value of this call, which must not be signalled twice.
        expect_call(f, ready, shown, 10, Outcome::eager); // the call must not wait for its answer
        expect_call(f, ready, shown, 11, Outcome::recorded);
        expect_call(f, ready, shown, 12, Outcome::replayed);
        EXPECT_THAT(cache.readable("frame"), HasSubstr("without its semaphores"));
    }
    Shared ready{*vulkan, 700}, shown{*vulkan, 600};
    Cache cache{options()};
    Function f = cache.load("frame", device, spec(ready, shown));
    expect_call(f, ready, shown, 701, Outcome::replayed);
    expect_call(f, ready, shown, 999'999, Outcome::replayed);
}

TEST_F(GpuSemaphores, AWaitHoldsTheWorkUntilTheHostSignals)
{
    device.prepare_recording();
    Shared ready{*vulkan, 0}, shown{*vulkan, 0};
    Cache cache{options()};
    Function f = wrap(cache, ready, shown);
    Stream stream = device.stream();
    const Buffer x = numbers(40), y = numbers(0);
    const auto call_and_signal_afterwards = [&](std::uint64_t frame, Outcome outcome) {
        EXPECT_EQ(f(stream, {{"x", x}, {"y", y}, {"frame", frame}}), outcome) << f.report().reason;
        std::this_thread::sleep_for(std::chrono::milliseconds{100});
        EXPECT_EQ(shown.value(), frame - 1);
        ready.signal(frame);
        stream.synchronize();
        EXPECT_EQ(y.read<int32_t>(), counting(41));
        EXPECT_EQ(shown.value(), frame);
    };
    expect_call(f, ready, shown, 1, Outcome::eager); // compiles and loads: both wait for all work on the device
    call_and_signal_afterwards(2, Outcome::eager);   // if this call was recorded, it would wait for this thread
    expect_call(f, ready, shown, 3, Outcome::recorded);
    call_and_signal_afterwards(4, Outcome::replayed);
}

TEST_F(GpuSemaphores, AnAdoptedGraphIsVerifiedWithoutThemAndFollowsTheFrame)
{
    device.prepare_recording();
    const Native& native = Native::instance();
    const auto copy = native.find<decltype(&::cuMemcpyAsync)>("cuMemcpyAsync");
    Shared ready{*vulkan, 0}, shown{*vulkan, 0}, ready2{*vulkan, 0}, shown2{*vulkan, 0};
    const auto captured = [&](const MemoryRef& x, const MemoryRef& pool, const MemoryRef& y, const Shared& from,
                              const Shared& to, std::uint64_t frame) {
        CUstream stream = native.stream();
        CUgraph graph = nullptr;
        native.check(native.driver().cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL),
                     "cuStreamBeginCapture");
        from.enqueue_wait(frame, stream);
        native.check(copy(pool.address.flat(), x.address.flat(), k_bytes, stream), "cuMemcpyAsync");
        native.check(copy(y.address.flat(), pool.address.flat(), k_bytes, stream), "cuMemcpyAsync");
        to.enqueue_signal(frame + 1, stream);
        native.check(native.driver().cuStreamEndCapture(stream, &graph), "cuStreamEndCapture");
        NativeCapture result;
        result.graph = graph;
        result.regions = {{"x", x}, {"y", y}};
        result.scratch = {{"pool", pool}};
        result.semaphores = {{"ready", from.handle()}, {"shown", to.handle()}};
        result.scalars = {{"frame", Number{u64, frame}}};
        return result;
    };
    const Buffer x = numbers(3), y = numbers(0), pool = device.allocate(k_bytes);
    const Buffer x2 = numbers(3), y2 = device.allocate(2 * k_bytes), pool2 = device.allocate(3 * k_bytes);
    const MemoryRef moved_y{y2.memory().address + k_bytes, k_bytes}, moved_pool{pool2.memory().address + 512, k_bytes};
    const Adoption adoption{.first = captured(x, pool, y, ready, shown, 40),
                            .second = captured(x2, moved_pool, moved_y, ready2, shown2, 47)};
    Cache cache{options()};
    Function f = cache.adopt("copy", device, spec(ready, shown), adoption); // would hang if the adoption ran a wait
    EXPECT_EQ(f.report().outcome, Outcome::recorded) << f.report().reason;
    for (const Shared* one : {&ready, &shown, &ready2, &shown2}) EXPECT_EQ(one->value(), 0U);
    EXPECT_EQ(y.read<int32_t>(), counting(0)) << "the caller's memory is put back";
    ready.signal(8);
    EXPECT_EQ(f({{"x", x}, {"y", y}, {"frame", std::uint64_t{8}}}), Outcome::replayed);
    device.synchronize();
    EXPECT_EQ(y.read<int32_t>(), counting(3));
    EXPECT_EQ(shown.value(), 9U);
    EXPECT_EQ(shown2.value(), 0U);
}

} // namespace
} // namespace warmgraph::test::semaphores_test
