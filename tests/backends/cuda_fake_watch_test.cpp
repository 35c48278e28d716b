// Tests how CUPTI's reports show the work that a thread enqueues. CUPTI reports all calls of driver functions in the
// process.
#include <optional>
#include <thread>

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::backends::test::cuda_fake_watch_test {
namespace {

using warmgraph::test::FakeCuda;

constexpr std::uint64_t k_bytes = 256;

void check(CUresult status) { EXPECT_EQ(status, CUDA_SUCCESS); }

class CudaFakeWatch : public testing::Test {
protected:
    CudaFakeWatch()
    {
        EXPECT_TRUE(succeeded(device->recording().prepare_recording()));
        watch = *device->recording().watch_enqueues(*stream);
    }
    ~CudaFakeWatch() override { device->release(memory); }

#define WATCHED(name, ...) check(fake.entry<decltype(::name)>(#name)(__VA_ARGS__))
    [[nodiscard]] CUstream native() const { return static_cast<CUstream>(stream->native()); }
    [[nodiscard]] CUdeviceptr x() const { return memory.address.flat(); }
    void fill(CUstream in) const { WATCHED(cuMemsetD8Async, x(), 1, k_bytes, in); }
    [[nodiscard]] std::string stray() const { return watch->stray().value_or(""); }
    void expect_nothing() const
    {
        EXPECT_EQ(watch->stray(), std::nullopt);
        EXPECT_FALSE(watch->waits_outside());
    }
    /// Makes another stream, which lives until the test ends.
    [[nodiscard]] CUstream other()
    {
        others.push_back(*device->create_stream());
        return static_cast<CUstream>(others.back()->native());
    }
    [[nodiscard]] CUevent event()
    {
        events.push_back(*device->create_event());
        return reinterpret_cast<CUevent>(static_cast<std::uintptr_t>(events.back()->native()));
    }

    FakeCuda fake;
    std::shared_ptr<Backend> backend = make_cuda_backend(FakeCuda::options());
    std::shared_ptr<Device> device = *backend->open("");
    std::shared_ptr<void> current = device->enter();
    MemoryRef memory = *device->allocate(k_bytes);
    std::unique_ptr<Module> module = *device->compiler().compile(warmgraph::test::k_fake_cuda_program, "");
    std::unique_ptr<Stream> stream = *device->create_stream();
    std::vector<std::unique_ptr<Stream>> others;
    std::vector<std::shared_ptr<Event>> events;
    std::unique_ptr<EnqueueWatch> watch;
};

TEST_F(CudaFakeWatch, WorkInTheGivenStreamBelongsThere)
{
    expect_nothing();
    RawParam number;
    append(number.value, std::int32_t{1});
    RawParam pointer{ParamKind::memory, {}, memory.address, 0};
    EXPECT_TRUE(
        succeeded(stream->launch({module.get(), "add_scalar", {1, 1, 1}, {1, 1, 1}, {pointer, number, number}})));
    fill(native());
    WATCHED(cuStreamWriteValue32, native(), x(), 1, 0);
    WATCHED(cuLaunchHostFunc, native(), [](void*) {}, nullptr);
    expect_nothing();
}

TEST_F(CudaFakeWatch, TellsTheDefaultStreamsByName)
{
    const auto in_new_watch = [&](CUstream in) {
        watch.reset();
        watch = *device->recording().watch_enqueues(*stream);
        fill(in);
        return stray();
    };
    EXPECT_EQ(in_new_watch(nullptr), "cuMemsetD8Async in the legacy default stream");
    EXPECT_EQ(in_new_watch(CU_STREAM_LEGACY), "cuMemsetD8Async in the legacy default stream");
    EXPECT_EQ(in_new_watch(CU_STREAM_PER_THREAD), "cuMemsetD8Async in the per-thread default stream");
    EXPECT_EQ(in_new_watch(native()), "");
    EXPECT_FALSE(watch->waits_outside());
}

TEST_F(CudaFakeWatch, ALaunchInTheLegacyStreamIsStrayAndTheFirstOneIsTold)
{
    CUmodule loaded = nullptr;
    CUfunction function = nullptr;
    const Bytes image = *module->image();
    WATCHED(cuModuleLoadData, &loaded, image.data());
    WATCHED(cuModuleGetFunction, &function, loaded, "iota");
    expect_nothing();
    CUdeviceptr pointer = x();
    std::int32_t count = 1;
    std::array<void*, 2> arguments{&pointer, &count};
    WATCHED(cuLaunchKernel, function, 1, 1, 1, 1, 1, 1, 0, nullptr, arguments.data(), nullptr);
    EXPECT_EQ(stray(), "cuLaunchKernel in the legacy default stream");
    fill(other());
    EXPECT_EQ(stray(), "cuLaunchKernel in the legacy default stream");
    EXPECT_FALSE(watch->waits_outside());
    WATCHED(cuModuleUnload, loaded);
}

TEST_F(CudaFakeWatch, ACallThatFailsEnqueuesNothing)
{
    EXPECT_NE(fake.entry<decltype(::cuMemcpyAsync)>("cuMemcpyAsync")(1, 2, 3, reinterpret_cast<CUstream>(77)),
              CUDA_SUCCESS);
    expect_nothing();
}

TEST_F(CudaFakeWatch, AnotherStreamIsStrayUntilItIsForked)
{
    const CUstream side = other(), far = other();
    const CUevent fork = event(), deeper = event(), join = event();
    WATCHED(cuEventRecord, fork, native());
    WATCHED(cuStreamWaitEvent, side, fork, 0);
    fill(side);
    WATCHED(cuEventRecordWithFlags, deeper, side, 0);
    WATCHED(cuStreamWaitEvent, far, deeper, 0);
    WATCHED(cuMemcpyAsync, x(), x() + 128, 64, far);
    WATCHED(cuEventRecord, join, far);
    WATCHED(cuStreamWaitEvent, native(), join, 0);
    fill(native());
    expect_nothing();
    const CUstream alone = other();
    WATCHED(cuMemcpyAsync, x(), x() + 128, 64, alone);
    EXPECT_EQ(stray(), fmt::format("cuMemcpyAsync in another stream ({:#x})", reinterpret_cast<std::uintptr_t>(alone)));
    EXPECT_FALSE(watch->waits_outside());
}

TEST_F(CudaFakeWatch, AnEventThatWasRecordedElsewhereOrBeforeIsWorkOutside)
{
    const CUstream side = other();
    const CUevent fork = event();
    WATCHED(cuEventRecord, fork, native());
    WATCHED(cuEventRecord, fork, side); // only the last record counts
    WATCHED(cuStreamWaitEvent, native(), fork, 0);
    EXPECT_TRUE(watch->waits_outside());
    EXPECT_EQ(watch->stray(), std::nullopt);
    WATCHED(cuEventRecord, fork, native());
    watch.reset();
    watch = *device->recording().watch_enqueues(*stream);
    WATCHED(cuStreamWaitEvent, side, fork, 0);
    EXPECT_TRUE(watch->waits_outside()) << "recorded before the watch";
    fill(side);
    EXPECT_THAT(stray(), StartsWith("cuMemsetD8Async in another stream"));
}

TEST_F(CudaFakeWatch, AGraphLaunchIsStrayInAnyStream)
{
    const auto exec = *device->instantiate({{{RawFill{memory.address, Bytes(4), 4}, {}}}});
    expect_nothing();
    EXPECT_TRUE(succeeded(exec->launch(*stream)));
    EXPECT_EQ(stray(), "cuGraphLaunch of a graph");
}

TEST_F(CudaFakeWatch, SynchronousCallsAreInTheLegacyStream)
{
    std::array<std::byte, 8> bytes{};
    const auto in_new_watch = [&](const auto& call) {
        watch.reset();
        watch = *device->recording().watch_enqueues(*stream);
        call();
        return stray();
    };
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuMemcpyHtoD, x(), bytes.data(), 8); }),
              "cuMemcpyHtoD in the legacy default stream");
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuMemcpyDtoH, bytes.data(), x(), 8); }),
              "cuMemcpyDtoH in the legacy default stream");
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuMemcpyDtoD, x(), x() + 8, 8); }),
              "cuMemcpyDtoD in the legacy default stream");
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuMemsetD8, x(), 0, 8); }), "cuMemsetD8 in the legacy default stream");
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuStreamSynchronize, native()); }), "cuStreamSynchronize, which synchronises");
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuCtxSynchronize); }), "cuCtxSynchronize, which synchronises");
    const CUevent done = event();
    EXPECT_EQ(in_new_watch([&] { WATCHED(cuEventSynchronize, done); }), "cuEventSynchronize, which synchronises");
    EXPECT_FALSE(watch->waits_outside());
}

TEST_F(CudaFakeWatch, TransfersOfTheDeviceObjectAreNoWorkOfTheFunction)
{
    std::array<std::byte, 8> bytes{};
    EXPECT_TRUE(succeeded(device->upload(memory.address, bytes)));
    EXPECT_TRUE(succeeded(device->download(bytes, memory.address)));
    const MemoryRef shadow = *device->reserve_shadow(1000);
    device->release(shadow);
    static_cast<void>(*device->create_stream()); // its destruction waits for the stream itself
    expect_nothing();
    EXPECT_TRUE(succeeded(stream->synchronize()));
    EXPECT_EQ(stray(), "cuStreamSynchronize, which synchronises") << "a capture holds none";
}

TEST_F(CudaFakeWatch, WaitsForMemoryAndSemaphoresAreOutside)
{
    const auto waits = [&](const auto& call) {
        watch.reset();
        watch = *device->recording().watch_enqueues(*stream);
        call();
        EXPECT_EQ(watch->stray(), std::nullopt);
        return watch->waits_outside();
    };
    WATCHED(cuMemsetD8Async, x(), 0, k_bytes, native());
    EXPECT_TRUE(waits([&] { WATCHED(cuStreamWaitValue32, native(), x(), 0, CU_STREAM_WAIT_VALUE_EQ); }));
    EXPECT_TRUE(waits([&] { WATCHED(cuStreamWaitValue64, native(), x(), 0, CU_STREAM_WAIT_VALUE_EQ); }));
    EXPECT_FALSE(waits([&] { WATCHED(cuStreamWriteValue64, native(), x(), 0, 0); }));
    std::array<CUstreamBatchMemOpParams, 2> batch{};
    batch[0].writeValue = {CU_STREAM_MEM_OP_WRITE_VALUE_32, x(), {0}, 0, 0};
    batch[1].waitValue = {CU_STREAM_MEM_OP_WAIT_VALUE_32, x(), {0}, CU_STREAM_WAIT_VALUE_EQ, 0};
    EXPECT_FALSE(waits([&] { WATCHED(cuStreamBatchMemOp, native(), 1, batch.data(), 0); }));
    EXPECT_TRUE(waits([&] { WATCHED(cuStreamBatchMemOp, native(), 2, batch.data(), 0); }));

    const auto semaphore = fake.semaphore(5);
    auto* const handle = static_cast<CUexternalSemaphore>(semaphore.get());
    EXPECT_TRUE(waits([&] {
        CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS wait{};
        wait.params.fence.value = 5;
        WATCHED(cuWaitExternalSemaphoresAsync, &handle, &wait, 1, native());
    }));
    EXPECT_TRUE(waits([&] {
        CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS signal{};
        signal.params.fence.value = 6;
        WATCHED(cuSignalExternalSemaphoresAsync, &handle, &signal, 1, native());
    }));
}

TEST_F(CudaFakeWatch, AWaitInAStreamThatDoesNotBelongIsBoth)
{
    WATCHED(cuMemsetD8Async, x(), 0, k_bytes, native());
    WATCHED(cuStreamWaitValue32, other(), x(), 0, CU_STREAM_WAIT_VALUE_EQ);
    EXPECT_TRUE(watch->waits_outside());
    EXPECT_THAT(stray(), StartsWith("cuStreamWaitValue32 in another stream"));
}

TEST_F(CudaFakeWatch, WorkThatIsCapturedDoesNotRunAndDoesNotCount)
{
    const CUstream side = other(), forked = other();
    const CUevent fork = event(), join = event();
    WATCHED(cuStreamBeginCapture, side, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
    fill(side);
    WATCHED(cuStreamWaitValue32, side, x(), 0, CU_STREAM_WAIT_VALUE_EQ);
    WATCHED(cuEventRecord, fork, side);
    WATCHED(cuStreamWaitEvent, forked, fork, 0);
    fill(forked);
    WATCHED(cuEventRecord, join, forked);
    WATCHED(cuStreamWaitEvent, side, join, 0);
    CUgraph graph = nullptr;
    WATCHED(cuStreamEndCapture, side, &graph);
    expect_nothing();
    WATCHED(cuGraphDestroy, graph);
    fill(side);
    EXPECT_THAT(stray(), StartsWith("cuMemsetD8Async in another stream")) << "that ran";
}

TEST_F(CudaFakeWatch, OnlyTheWorkOfItsOwnThreadCounts)
{
    std::string of_theirs;
    const auto theirs = *device->create_stream();
    std::thread([&] {
        const auto here = device->enter();
        fill(nullptr); // this thread has no watch yet
        const auto own = *device->recording().watch_enqueues(*theirs);
        EXPECT_EQ(own->stray(), std::nullopt);
        fill(native()); // native() is the stream that the other thread watches
        of_theirs = own->stray().value_or("");
    }).join();
    expect_nothing();
    EXPECT_THAT(of_theirs, StartsWith("cuMemsetD8Async in another stream"));
    fill(native());
    expect_nothing();
    fill(nullptr);
    EXPECT_EQ(stray(), "cuMemsetD8Async in the legacy default stream") << "the other watch's end was not this one's";
}

TEST_F(CudaFakeWatch, TwoOfOneThreadSeeTheSameCallsEachWithItsOwnStream)
{
    const CUstream side = other();
    auto inner = *device->recording().watch_enqueues(*others.back());
    fill(native());
    EXPECT_EQ(watch->stray(), std::nullopt);
    EXPECT_THAT(inner->stray().value_or(""), HasSubstr("another stream"));
    std::swap(inner, watch);
    inner.reset(); // the watch that began first ends first
    auto last = *device->recording().watch_enqueues(*stream);
    fill(side);
    EXPECT_THAT(last->stray().value_or(""), HasSubstr("another stream"));
}

TEST_F(CudaFakeWatch, CallbacksAreEnabledWhileOneLives)
{
    const auto callbacks = [&] { return fake.calls_of("cuptiEnableCallback"); };
    fake.reset();
    auto second = *device->recording().watch_enqueues(*stream);
    second.reset();
    EXPECT_EQ(callbacks(), 0) << "the first watches for both";
    watch.reset();
    const long disabled = callbacks();
    EXPECT_GT(disabled, 100);
    fill(nullptr);
    watch = *device->recording().watch_enqueues(*stream);
    EXPECT_GT(callbacks(), disabled + 100);
    expect_nothing();
    fill(nullptr);
    EXPECT_NE(watch->stray(), std::nullopt);
}

TEST_F(CudaFakeWatch, IsRefusedWhereCuptiCannotOrTheStreamIsNone)
{
    watch.reset();
    fake.fail("cuptiEnableCallback", 1, 1, CUDA_ERROR_UNKNOWN);
    EXPECT_TRUE(failed_with(device->recording().watch_enqueues(*stream), ErrorCode::not_recordable, "watch cu"));
    EXPECT_TRUE(fake.was_hit());
    fake.reset();
    EXPECT_TRUE(succeeded(device->recording().watch_enqueues(*stream)));
    fake.fail("cuStreamIsCapturing", 1, 0, CUDA_ERROR_UNKNOWN); // if the driver does not answer, the work may have run
    watch = *device->recording().watch_enqueues(*stream);
    fill(other());
    EXPECT_NE(watch->stray(), std::nullopt);
}

TEST_F(CudaFakeWatch, WhoWatchesOrHoldsEndsAPauseAndLetsNoneBegin)
{
    DeviceRecording& recording = device->recording();
    EXPECT_FALSE(recording.pause_recording()) << "somebody watches";
    watch.reset();
    ASSERT_TRUE(recording.pause_recording());
    watch = *recording.watch_enqueues(*stream);
    fill(other());
    EXPECT_THAT(stray(), StartsWith("cuMemsetD8Async")) << "it sees again";
    watch.reset();
    ASSERT_TRUE(recording.pause_recording());
    auto held = take(recording.hold_recording());
    EXPECT_FALSE(recording.pause_recording()) << "somebody holds it";
    held.reset();
    EXPECT_TRUE(recording.pause_recording()) << "who held it began it again";
}

/// This test runs in its own process: a process has only one tracker, which never ends.
TEST(CudaFakeWatchDeath, IsRefusedBeforeRecordingWasPrepared)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto refused = [] {
        const FakeCuda fake;
        const auto device = *make_cuda_backend(FakeCuda::options())->open("");
        const auto stream = *device->create_stream();
        const bool is_refused =
            !!failed_with(device->recording().watch_enqueues(*stream), ErrorCode::not_recordable, "prepare_recording");
        return is_refused && fake.calls_of("cuptiSubscribe") == 0 ? 40 : 9; // exit codes that no sanitizer uses
    };
    EXPECT_EXIT(std::exit(refused()), testing::ExitedWithCode(40), "");
}

} // namespace
} // namespace warmgraph::backends::test::cuda_fake_watch_test
