// Parts of the CUDA backend that need neither a driver nor a device.
#include <map>
#include <set>

#include "code/kernel_params.hpp"
#include "code/nvrtc.hpp"
#include "device/enqueue.hpp"
#include "device/facts.hpp"
#include "device/far_addresses.hpp"
#include "device/watched_calls.hpp"
#include "expect_error.hpp"
#include "graph/nodes/memory_operations_node.hpp"
#include "graph/nodes/semaphores_node.hpp"
#include "warmgraph/backends/cuda.hpp"

namespace warmgraph::backends::cuda::cuda_parts_test {
namespace {

using Words = std::vector<std::string>;

TEST(CudaFacts, TakeTheDriversVersionFromItsFileOrItsModule)
{
    EXPECT_EQ(version_in_library_name("/usr/lib/x86_64-linux-gnu/libcuda.so.580.159.03"), "580.159.03");
    EXPECT_EQ(version_in_library_name("/usr/lib/libcuda.so.1"), "");
    EXPECT_EQ(version_in_library_name("/tmp/libfake_cuda.so"), "");
    EXPECT_EQ(version_in_kernel_module_text("NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.159.03  Tue Aug 5"),
              "580.159.03");
    EXPECT_EQ(version_in_kernel_module_text(
                  "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  575.57.08  Release Build"),
              "575.57.08");
    EXPECT_EQ(version_in_kernel_module_text(""), "");
    EXPECT_EQ(version_text(13000), "13.0");
    EXPECT_EQ(version_text(12080), "12.8");
}

TEST(CudaFacts, TellAPartOfADeviceFromTheWhole)
{
    EXPECT_EQ(partition_in_name("NVIDIA H200"), "none");
    EXPECT_EQ(partition_in_name("NVIDIA H200 MIG 1g.18gb"), "MIG 1g.18gb");
}

TEST(WatchedCalls, AreFoundByTheirIdEachVersionForItself)
{
    std::set<std::string> names;
    for (const WatchedCall& call : watched_calls()) {
        EXPECT_EQ(find_watched_call(call.id), &call) << call.name;
        EXPECT_TRUE(names.insert(call.name).second) << call.name;
        const bool per_thread =
            std::string_view(call.name).ends_with("_ptsz") || std::string_view(call.name).ends_with("_ptds");
        EXPECT_EQ(call.is_per_thread, per_thread) << call.name;
        EXPECT_EQ(call.is_waiting != nullptr, call.kind == WatchedCall::Kind::batch) << call.name;
    }
    for (const char* name :
         {"cuStreamWaitValue32", "cuStreamWaitValue32_v2_ptsz", "cuMemcpyHtoD_v2_ptds", "cuMemcpyAsync",
          "cuLaunchKernelEx_ptsz", "cuStreamBatchMemOp", "cuMemPrefetchAsync", "cuCtxSynchronize"})
        EXPECT_TRUE(names.contains(name)) << name;
    EXPECT_EQ(find_watched_call(CUPTI_DRIVER_TRACE_CBID_cuModuleLoad), nullptr);
    EXPECT_EQ(find_watched_call(CUPTI_DRIVER_TRACE_CBID_INVALID), nullptr);
    EXPECT_EQ(find_watched_call(~0U), nullptr);
}

TEST(WatchedCalls, TakeTheStreamFromTheirParameters)
{
    int here = 0;
    auto* const stream = reinterpret_cast<CUstream>(&here);
    cuMemcpyAsync_ptsz_params copy{};
    copy.hStream = stream;
    EXPECT_EQ(find_watched_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyAsync_ptsz)->stream(&copy), stream);
    CUlaunchConfig config{};
    config.hStream = stream;
    cuLaunchKernelEx_params launch{};
    launch.config = &config;
    EXPECT_EQ(find_watched_call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx)->stream(&launch), stream);
    cuStreamWaitEvent_ptsz_params wait{stream, reinterpret_cast<CUevent>(&wait), 0};
    EXPECT_EQ(find_watched_call(CUPTI_DRIVER_TRACE_CBID_cuStreamWaitEvent_ptsz)->event(&wait), wait.hEvent);
    EXPECT_EQ(find_watched_call(CUPTI_DRIVER_TRACE_CBID_cuMemcpyHtoD_v2)->stream, nullptr);
}

TEST(FarAddresses, AreTakenOnceAndGivenAgainWhenTheyAreFree)
{
    constexpr std::uint64_t k_unit = 2ULL << 20, k_largest = 512ULL << 30;
    EXPECT_FALSE(FarPlace::take(1ULL << 46, k_unit));
    std::uint64_t above = 0;
    for (int round = 0; round < 40; ++round) { // goes through the whole range several times
        std::vector<FarPlace> places;
        std::map<std::uint64_t, std::uint64_t> ends;
        for (const std::uint64_t size :
             std::initializer_list<std::uint64_t>{1, 5ULL << 30, k_largest, 8ULL << 30, k_largest}) {
            auto place = FarPlace::take(size, k_unit);
            ASSERT_TRUE(place);
            EXPECT_EQ(place->start() % k_unit, 0U);
            EXPECT_GE(place->start(), 1ULL << 44);
            EXPECT_LE(place->start() + size, 1ULL << 46);
            ends[place->start()] = place->start() + size - 1;
            above = std::max(above, place->start());
            places.push_back(std::move(*place));
        }
        for (auto at = ends.begin(); std::next(at) != ends.end(); ++at)
            EXPECT_GT(std::next(at)->first >> 32U, at->second >> 32U);
    }
    EXPECT_GT(above, 1ULL << 45) << "an address comes back late";
    std::vector<FarPlace> all;
    while (auto place = FarPlace::take(1ULL << 43, k_unit)) all.push_back(std::move(*place));
    EXPECT_EQ(all.size(), 5U); // each piece has 2^46 - 2^44 bytes
    all.pop_back();
    EXPECT_TRUE(FarPlace::take(1ULL << 43, k_unit));
}

TEST(CudaOptions, SplitAtBlanksOutsideQuotationMarks)
{
    const auto words = [](std::string_view text) { return split_options(text).value_or(Words{"failed"}); };
    EXPECT_EQ(words(""), Words{});
    EXPECT_EQ(words("  -DX=1\t--std=c++17 \n"), (Words{"-DX=1", "--std=c++17"}));
    EXPECT_EQ(words("-I'/a b' \"-DTEXT=it's\" ''"), (Words{"-I/a b", "-DTEXT=it's", ""}));
    EXPECT_TRUE(failed_with(split_options("-I'/a b"), ErrorCode::invalid_argument, "no closing one"));
}

TEST(CudaLibraries, AreNamedWithTheCureWhereTheyAreMissing)
{
    const auto backend = make_cuda_backend({.driver = "/nonexistent/libcuda.so.1"});
    EXPECT_TRUE(failed_with(backend->devices(), ErrorCode::not_found, "/nonexistent/libcuda.so.1"));
    EXPECT_TRUE(failed_with(backend->open(""), ErrorCode::not_found, "WARMGRAPH_CUDA_DRIVER"));
    EXPECT_TRUE(
        failed_with(make_cuda_backend({.driver = "libm.so.6"})->devices(), ErrorCode::unsupported, "libm.so.6"));
    EXPECT_TRUE(failed_with(Nvrtc::load("/nonexistent/libnvrtc.so"), ErrorCode::not_found, "WARMGRAPH_NVRTC"));
    EXPECT_TRUE(failed_with(Nvrtc::load("libm.so.6"), ErrorCode::not_found, "lacks functions"));
    EXPECT_NE(make_cuda_backend({.nvrtc = "/nonexistent/libnvrtc.so"})
                  ->libraries()
                  .at(0)
                  .found.find("install the CUDA toolkit"),
              std::string::npos);
}

TEST(CudaArguments, AreThePointersToTheirBytes)
{
    RawKernel work;
    work.shared_bytes = 16;
    RawParam memory, local, number;
    memory.kind = ParamKind::memory;
    memory.address = Address::from_flat(0x7f0000001000);
    local.kind = ParamKind::local;
    local.local_size = 256;
    append(number.value, std::int32_t{7});
    work.params = {memory, local, number};

    KernelParams params;
    const CUDA_KERNEL_NODE_PARAMS& arguments = params.fill(nullptr, work);
    EXPECT_EQ(*static_cast<std::uint64_t*>(arguments.kernelParams[0]), 0x7f0000001000U);
    EXPECT_EQ(arguments.kernelParams[1], work.params[2].value.data());
    EXPECT_EQ(arguments.extra, nullptr);
    EXPECT_EQ(arguments.sharedMemBytes, 272U);
    EXPECT_EQ(shared_bytes_of(work), 272U);
}

TEST(CudaArguments, PassAPackedBufferWhole)
{
    RawKernel work;
    work.packed = true;
    work.params.resize(1);
    work.params[0].value.resize(1720);
    KernelParams params;
    const CUDA_KERNEL_NODE_PARAMS& arguments = params.fill(nullptr, work);
    EXPECT_EQ(arguments.kernelParams, nullptr);
    ASSERT_NE(arguments.extra, nullptr);
    EXPECT_EQ(arguments.extra[0], CU_LAUNCH_PARAM_BUFFER_POINTER);
    EXPECT_EQ(arguments.extra[1], work.params[0].value.data());
    EXPECT_EQ(*static_cast<std::size_t*>(arguments.extra[3]), 1720U);
    EXPECT_EQ(arguments.extra[4], CU_LAUNCH_PARAM_END);
}

TEST(CudaMemoryOperations, AreGivenToTheDriverAsTheyWere)
{
    using enum MemoryOperationKind;
    Core core;
    core.context = reinterpret_cast<CUcontext>(0x10); // NOLINT: only passed on
    const Address at = Address::from_flat(0x7f0000001000);
    NativeOperations native;
    const auto& params = native.fill(core, {{{wait_32, at, 5, CU_STREAM_WAIT_VALUE_EQ | CU_STREAM_WAIT_VALUE_FLUSH},
                                             {write_64, at + 8, 1ULL << 40, 0},
                                             {barrier, {}, 0, CU_STREAM_MEMORY_BARRIER_TYPE_GPU},
                                             {flush_remote_writes, {}, 0, 0}}});
    EXPECT_EQ(params.ctx, core.context);
    ASSERT_EQ(params.count, 4U);
    EXPECT_EQ(params.flags, 0U);
    EXPECT_EQ(params.paramArray[0].operation, CU_STREAM_MEM_OP_WAIT_VALUE_32);
    EXPECT_EQ(params.paramArray[0].waitValue.address, at.flat());
    EXPECT_EQ(params.paramArray[0].waitValue.value64, 5U);
    EXPECT_EQ(params.paramArray[0].waitValue.flags, 1U | 1U << 30);
    EXPECT_EQ(params.paramArray[1].operation, CU_STREAM_MEM_OP_WRITE_VALUE_64);
    EXPECT_EQ(params.paramArray[1].writeValue.value64, 1ULL << 40);
    EXPECT_EQ(params.paramArray[2].memoryBarrier.flags, 1U);
    EXPECT_EQ(params.paramArray[3].operation, CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES);
}

TEST(CudaMemoryOperations, NeedAlignedWordsAndADriverThatHasThem)
{
    using enum MemoryOperationKind;
    const auto at = [](std::uint64_t flat) { return Address::from_flat(flat); };
    EXPECT_TRUE(succeeded(check_operations({{{wait_32, at(0x1004), 0, 0}, {barrier, {}, 0, 0}}})));
    EXPECT_TRUE(failed_with(check_operations({{{barrier, {}, 0, 0}, {write_64, at(0x1004), 0, 0}}}),
                            ErrorCode::invalid_argument, "memory operation 1: a word of 8 bytes at 0x1004"));
    EXPECT_TRUE(failed_with(check_operations({{{write_32, {}, 0, 0}}}), ErrorCode::invalid_argument, "at 0x0"));
    EXPECT_TRUE(failed_with(check_operations({}), ErrorCode::invalid_argument, "memory operations is empty"));
    Core core;
    core.driver = std::make_shared<Driver>(); // a driver without any function
    EXPECT_TRUE(failed_with(read_operations(core, nullptr), ErrorCode::not_recordable,
                            "has no cuGraphBatchMemOpNodeGetParams"));
}

TEST(CudaSemaphores, AreGivenToTheDriverAsTheyWere)
{
    using enum SemaphoreAction;
    NativeSemaphores native;
    const auto& signals = native.signal({signal, {{0x10, 5, 0}, {0x20, 1ULL << 40, 1}}});
    ASSERT_EQ(signals.numExtSems, 2U);
    EXPECT_EQ(signals.extSemArray[1], reinterpret_cast<CUexternalSemaphore>(0x20)); // NOLINT: only passed on
    EXPECT_EQ(signals.paramsArray[1].params.fence.value, 1ULL << 40);
    EXPECT_EQ(signals.paramsArray[1].params.nvSciSync.fence, nullptr);
    EXPECT_EQ(signals.paramsArray[1].flags, 1U);
    const auto& waits = native.wait({wait, {{0x30, 7, 2}}});
    ASSERT_EQ(waits.numExtSems, 1U);
    EXPECT_EQ(waits.extSemArray[0], reinterpret_cast<CUexternalSemaphore>(0x30)); // NOLINT
    EXPECT_EQ(waits.paramsArray[0].params.fence.value, 7U);
    EXPECT_EQ(waits.paramsArray[0].params.keyedMutex.timeoutMs, 0U);
    EXPECT_EQ(waits.paramsArray[0].flags, 2U);
    EXPECT_TRUE(succeeded(check_semaphores({signal, {{1, 0, 0}}})));
    EXPECT_TRUE(failed_with(check_semaphores({signal, {{1, 0, 0}, {0, 0, 0}}}), ErrorCode::invalid_argument,
                            "semaphore 1 is null"));
    EXPECT_TRUE(failed_with(check_semaphores({}), ErrorCode::invalid_argument, "no semaphores"));
}

/// The semaphore and the parameters that the test's own driver functions return.
CUexternalSemaphore g_semaphore = reinterpret_cast<CUexternalSemaphore>(0x10); // NOLINT: only passed on
CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS g_signal{};
CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS g_wait{};

TEST(CudaSemaphores, AreReadWhereAFenceValueIsAllThatTheyHave)
{
    using enum SemaphoreAction;
    Driver driver;
    driver.cuGraphExternalSemaphoresSignalNodeGetParams = [](CUgraphNode, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS* params) {
        *params = {&g_semaphore, &g_signal, 1};
        return CUDA_SUCCESS;
    };
    driver.cuGraphExternalSemaphoresWaitNodeGetParams = [](CUgraphNode, CUDA_EXT_SEM_WAIT_NODE_PARAMS* params) {
        *params = {&g_semaphore, &g_wait, 1};
        return CUDA_SUCCESS;
    };
    g_signal.params.fence.value = 1ULL << 40;
    g_signal.flags = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC;
    auto read = read_signal(driver, nullptr);
    ASSERT_TRUE(succeeded(read));
    EXPECT_EQ(std::get<RawSemaphores>(*read), (RawSemaphores{signal, {{0x10, 1ULL << 40, 1}}}));
    g_wait.params.fence.value = 3;
    read = read_wait(driver, nullptr);
    ASSERT_TRUE(succeeded(read));
    EXPECT_EQ(std::get<RawSemaphores>(*read), (RawSemaphores{wait, {{0x10, 3, 0}}}));

    const auto refused = [&](const char* why) {
        EXPECT_TRUE(failed_with(read_wait(driver, nullptr), ErrorCode::not_recordable, why));
    };
    g_wait.params.nvSciSync.fence = &g_wait;
    refused("semaphore 0: it has an NvSciSync fence");
    g_wait.params.nvSciSync.fence = nullptr;
    g_wait.params.keyedMutex.key = 4;
    refused("it has a keyed mutex (key 4, 0 ms)");
    g_wait.params.keyedMutex.key = 0;
    g_wait.params.keyedMutex.timeoutMs = 10;
    refused("it has a keyed mutex (key 0, 10 ms)");
    g_wait.params.keyedMutex.timeoutMs = 0;
    g_wait.flags = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_SKIP_NVSCIBUF_MEMSYNC; // a flag that is only valid for signals
    refused("flags 0x1, expected at most 0x2");
    g_signal.params.keyedMutex.key = 1;
    EXPECT_TRUE(failed_with(read_signal(driver, nullptr), ErrorCode::not_recordable, "keyed mutex (key 1"));
}

TEST(CudaSemaphores, NeedADriverThatHasThem)
{
    const Driver driver; // a driver without any function
    EXPECT_TRUE(failed_with(read_signal(driver, nullptr), ErrorCode::not_recordable,
                            "has no cuGraphExternalSemaphoresSignalNodeGetParams"));
    EXPECT_TRUE(failed_with(read_wait(driver, nullptr), ErrorCode::not_recordable,
                            "has no cuGraphExternalSemaphoresWaitNodeGetParams"));
    EXPECT_TRUE(failed_with(Result<void>{no_semaphores(driver, "cuGraphAddExternalSemaphoresWaitNode")},
                            ErrorCode::unsupported, "has no cuGraphAddExternalSemaphoresWaitNode"));
}

} // namespace
} // namespace warmgraph::backends::cuda::cuda_parts_test
