// Promise G1 for the CUDA backend: if any driver call fails, the result is an Error that names the call, or the work
// succeeds without the call. Nothing leaks.
#include <cstdlib>
#include <set>

#include "cuda_fake_scenarios.hpp"
#include "device/driver.hpp"
#include "warmgraph/backends/bulk_memory.hpp"
#include "warmgraph/backends/compiler.hpp"

namespace warmgraph::backends::test::cuda_fake_faults_test {
namespace {

using warmgraph::test::FakeCuda;

class CudaFakeFaults : public testing::TestWithParam<Scenario> {
protected:
    /// Runs all steps, from loading the driver until the device is closed.
    [[nodiscard]] Result<void> run()
    {
        const auto opened = make_cuda_backend(FakeCuda::options())->open("");
        if (!opened) return std::unexpected(opened.error());
        return GetParam().run(**opened, fake);
    }
    /// Expects that the error names the call and its status code.
    void check_error(const Error& error, const std::string& call, CUresult status)
    {
        EXPECT_THAT(error.message, Not(HasSubstr(k_wrong)));
        if (!call.starts_with("cu") || call.starts_with("cupti")) return; // error texts of NVRTC and CUPTI differ
        EXPECT_THAT(error.message, HasSubstr(call));
        // If an exec refuses an update, the executable makes a new exec instead.
        const bool by_another_exec = call == "cuGraphExecMemcpyNodeSetParams" ||
                                     call == "cuGraphExecMemsetNodeSetParams" ||
                                     call == "cuGraphExecBatchMemOpNodeSetParams" ||
                                     call == "cuGraphExecExternalSemaphoresSignalNodeSetParams" ||
                                     call == "cuGraphExecExternalSemaphoresWaitNodeSetParams";
        const ErrorCode expected = status == CUDA_ERROR_OUT_OF_MEMORY ? ErrorCode::out_of_memory
                                   : by_another_exec                  ? ErrorCode::unsupported
                                                                      : ErrorCode::driver_failed;
        EXPECT_EQ(to_string(error.code), to_string(expected)) << error.message;
    }
    FakeCuda fake;
};

TEST_P(CudaFakeFaults, NameTheCallAndLeakNothing)
{
    const Scenario& scenario = GetParam();
    ASSERT_TRUE(succeeded(run()));
    fake.reset();
    ASSERT_TRUE(succeeded(run())); // this first run does the work that a process does only once
    const std::string before = fake.live();
    const std::vector<long> positions = fake.fault_positions();
    long errors = 0;
    for (const CUresult status : {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_UNKNOWN}) {
        for (const long nth : positions) {
            fake.reset();
            fake.fail_at(nth, status);
            const Result<void> done = run();
            ASSERT_TRUE(fake.was_hit()) << nth;
            const std::string call = fake.call(nth - 1);
            SCOPED_TRACE(fmt::format("call {}, {}, fails with {}", nth, call, static_cast<int>(status)));
            if (!done) {
                check_error(done.error(), call, status);
                ++errors;
            }
            fake.reset();
            ASSERT_EQ(fake.live(), before);
            ASSERT_TRUE(succeeded(run())) << "without the fault";
            ASSERT_EQ(fake.live(), before);
        }
    }
    EXPECT_GE(errors, scenario.least_errors);
}

INSTANTIATE_TEST_SUITE_P(Scenarios, CudaFakeFaults, testing::ValuesIn(scenarios()),
                         [](const testing::TestParamInfo<Scenario>& of) { return of.param.name; });

/// The fake driver reports success but does nothing. The backend reads the values back, and so notices this.
TEST(CudaFakeSilence, IsNoticedInEdgesLaunchAttributesAndFunctionAttributes)
{
    const FakeCuda fake;
    const auto opened = make_cuda_backend(FakeCuda::options())->open("");
    ASSERT_TRUE(opened);
    Device& device = **opened;
    const auto memory = device.allocate(256);
    ASSERT_TRUE(memory);
    const auto instantiated = [&] {
        const auto module =
            device.compiler().compile(warmgraph::test::k_fake_cuda_program, ""); // a function with default attributes
        RawParam n;
        append(n.value, std::int32_t{64});
        RawKernel kernel{
            module->get(), "iota", {1, 1, 1}, {64, 1, 1}, {{ParamKind::memory, {}, memory->address, 0}, n}};
        kernel.attributes = {{CU_LAUNCH_ATTRIBUTE_PRIORITY, {std::byte{2}, {}, {}, {}}}};
        kernel.function_attributes = {{CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 60}};
        RawGraph graph;
        graph.nodes = {{kernel, {}}, {kernel, {0}, {EdgeData{1, 0, 1}}}};
        const auto made = device.instantiate(graph);
        return made ? Result<void>{} : Result<void>{std::unexpected(made.error())};
    };
    EXPECT_TRUE(succeeded(instantiated()));
    for (const auto& [entry, text] :
         {std::pair{"cuGraphAddDependencies", "other edges: one is missing"},
          std::pair{"cuGraphKernelNodeSetAttribute", "attribute 'priority' was set to"},
          std::pair{"cuFuncSetAttribute", "function attribute 9 was set to 60 and reads back as -1"}}) {
        fake.reset();
        fake.fail(entry, 1, 0, CUDA_SUCCESS);
        EXPECT_TRUE(failed_with(instantiated(), ErrorCode::driver_failed, text)) << entry;
        EXPECT_TRUE(fake.was_hit());
    }
    fake.reset();
    device.release(*memory);
}

/// If the kernels did not run, the suites would compare the host's implementation with itself.
TEST(CudaFakeBulkMemory, IsTheKernelsWorkWhereTheDriverTakesThem)
{
    const FakeCuda fake;
    for (const bool takes : {false, true}) {
        fake.take_bulk_kernels(takes);
        const auto opened = make_cuda_backend(FakeCuda::options())->open("");
        ASSERT_TRUE(opened);
        const auto memory = (*opened)->allocate(256);
        ASSERT_TRUE(memory);
        fake.reset();
        for (int i = 0; i < 3; ++i) EXPECT_TRUE(succeeded((*opened)->bulk().fingerprint(*memory)));
        // The two calls are for the fat binary, which has no code for this device, and for the PTX text.
        EXPECT_EQ(fake.calls_of("cuModuleLoadData"), 2) << "asked once for each, whatever the answer";
        EXPECT_EQ(fake.calls_of("cuLaunchKernelEx"), takes ? 3 : 0);
        (*opened)->release(*memory);
    }
    fake.take_bulk_kernels(false);
}

/// Each driver function that the backend uses must fail in a fault test, at its first call, at its last call, and at
/// calls in between.
TEST(CudaFakeFaultCoverage, IsOfEveryEntryPointButTheNamedOnes)
{
    const FakeCuda fake;
    std::set<std::string> reached;
    for (const Scenario& scenario : scenarios()) {
        fake.reset();
        {
            const auto opened = make_cuda_backend(FakeCuda::options())->open("");
            ASSERT_TRUE(opened);
            EXPECT_TRUE(succeeded(scenario.run(**opened, fake))) << scenario.name;
        }
        for (long i = 0; i < fake.calls(); ++i) reached.insert(fake.call(i));
    }
    std::vector<std::string> missing;
#define ADD_MISSING(name)                                                                                              \
    if (!reached.contains(#name)) missing.emplace_back(#name);
    WARMGRAPH_CUDA_REQUIRED(ADD_MISSING)
    WARMGRAPH_CUDA_OPTIONAL(ADD_MISSING)
#undef ADD_MISSING
    EXPECT_THAT(missing, UnorderedElementsAre("cuLibraryGetModule", "cuKernelGetLibrary",
                                              "cuKernelGetFunction", // the fake has no libraries
                                              "cuGraphInstantiate",  // if cuGraphInstantiateWithParams is missing
                                              "cuDeviceGetUuid", "cuCtxSynchronize", "cuMemcpy", // only in GPU tests
                                              "cuMemGetAddressRange", "cuEventSynchronize"));
}

/// Each case runs in its own process: a process has only one tracker, and other tests start it.
TEST(CudaTracking, StartsWithTheDeviceWhereTheEnvironmentAsksForIt)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    const auto subscriptions = [](const char* value) {
        const FakeCuda fake;
        ::setenv("WARMGRAPH_TRACK_IMAGES", value, 1);
        const auto opened = make_cuda_backend(FakeCuda::options())->open("");
        return opened ? 40 + static_cast<int>(fake.calls_of("cuptiSubscribe")) : 9; // exit codes that no sanitizer uses
    };
    EXPECT_EXIT(std::exit(subscriptions("0")), testing::ExitedWithCode(40), "");
    EXPECT_EXIT(std::exit(subscriptions("1")), testing::ExitedWithCode(41), "");
}

} // namespace
} // namespace warmgraph::backends::test::cuda_fake_faults_test
