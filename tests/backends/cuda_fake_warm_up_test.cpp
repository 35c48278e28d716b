// Tests the warm-up: another thread does the slow steps of the first restore, once for a process. At the end they are
// undone. A warm-up never fails.
#include <cstdlib>
#include <cstring>

#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expect_error.hpp"
#include "fake_cuda/steering.hpp"
#include "lacking.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::test::cuda_fake_warm_up_test {
namespace {

using warmgraph::test::FakeCuda;

class CudaFakeWarmUp : public testing::Test {
protected:
    CudaFakeWarmUp()
    {
        fake.take_bulk_kernels(FakeCuda::Kernels::as_text_and_fatbin);
        EXPECT_EQ(::setenv("WARMGRAPH_WARM_UP", "1", 1), 0);
    }
    ~CudaFakeWarmUp() override
    {
        fake.take_bulk_kernels(false);
        ::setenv("WARMGRAPH_WARM_UP", "0", 1);
    }
    CudaFakeWarmUp(const CudaFakeWarmUp&) = delete;
    CudaFakeWarmUp& operator=(const CudaFakeWarmUp&) = delete;

    [[nodiscard]] std::shared_ptr<Device> open() const { return *backend->open(""); }
    /// Loads a module. This waits until the warm-up has ended.
    void load_something(Device& device) const
    {
        const auto module = take(device.compiler().compile(warmgraph::test::k_fake_cuda_program, ""));
        const auto image = module->image();
        ASSERT_TRUE(image);
        EXPECT_TRUE(succeeded(device.load(*image)));
    }
    [[nodiscard]] long place_of(const std::string& entry, long from = 0) const
    {
        for (long i = from; i < fake.calls(); ++i)
            if (fake.call(i) == entry) return i;
        return -1;
    }
    FakeCuda fake;
    std::shared_ptr<Backend> backend = make_cuda_backend(FakeCuda::options());
};

TEST_F(CudaFakeWarmUp, InstantiatesAGraphThatIsNeverLaunchedAndFreesIt)
{
    const auto device = open();
    device->begin_warm_up();
    load_something(*device);
    EXPECT_EQ(fake.calls_of("cuGraphInstantiate"), 1);
    EXPECT_GE(fake.calls_of("cuGraphAddKernelNode"), 100);
    EXPECT_EQ(fake.calls_of("cuGraphExecDestroy"), 1);
    EXPECT_EQ(fake.calls_of("cuGraphDestroy"), 1);
    EXPECT_EQ(fake.calls_of("cuGraphLaunch"), 0);
    EXPECT_EQ(fake.calls_of("cuLaunchKernel") + fake.calls_of("cuLaunchKernelEx"), 0);
}

TEST_F(CudaFakeWarmUp, IsOverBeforeAnImageIsLoaded)
{
    const auto device = open();
    const auto module = device->compiler().compile(warmgraph::test::k_fake_cuda_program, "");
    ASSERT_TRUE(module);
    const Bytes image = *(*module)->image();
    const long before = fake.calls();
    device->begin_warm_up();
    ASSERT_TRUE(device->load(image));
    const long freed = place_of("cuGraphExecDestroy", before);
    ASSERT_GE(freed, 0);
    EXPECT_GE(place_of("cuModuleLoadData", before), 0);
    EXPECT_GE(place_of("cuModuleLoadData", freed), 0) << "the image's is after it";
}

TEST_F(CudaFakeWarmUp, LeavesNothingWhenTheDeviceIsClosed)
{
    { // opening the first device does the work that a process does only once
        const auto first = open();
        first->begin_warm_up();
    }
    const std::string before = fake.live();
    for (int i = 0; i < 10; ++i) {
        const auto device = open();
        device->begin_warm_up(); // closed while the warm-up runs
    }
    EXPECT_EQ(fake.live(), before);
}

TEST_F(CudaFakeWarmUp, HappensOnce)
{
    const auto device = open();
    for (int i = 0; i < 3; ++i) device->begin_warm_up();
    load_something(*device);
    device->begin_warm_up();
    load_something(*device);
    EXPECT_EQ(fake.calls_of("cuGraphInstantiate"), 1);
}

/// If the device's code is missing, the driver would have to compile the text, which takes 0.3 s.
TEST_F(CudaFakeWarmUp, IsLeftOutWhereThereIsNoCodeForTheDevice)
{
    fake.take_bulk_kernels(FakeCuda::Kernels::as_text);
    const auto device = open();
    device->begin_warm_up();
    load_something(*device);
    EXPECT_EQ(fake.calls_of("cuGraphCreate"), 0);
}

TEST_F(CudaFakeWarmUp, IsLeftOutWhereTheEnvironmentSaysSo)
{
    ASSERT_EQ(::setenv("WARMGRAPH_WARM_UP", "0", 1), 0);
    const auto device = open();
    device->begin_warm_up();
    load_something(*device);
    EXPECT_EQ(fake.calls_of("cuGraphCreate"), 0);
}

/// Whether pages can be touched ahead: the system has MADV_POPULATE_WRITE (Linux 5.14), and glibc is the allocator.
bool can_touch_ahead()
{
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    return false;
#else
    constexpr int k_populate_write = 23;
    return ::madvise(nullptr, 0, k_populate_write) == 0;
#endif
}

/// How many pages this thread touched for the first time while it wrote `bytes`.
long first_touches(std::size_t bytes)
{
    const auto faults = [] {
        rusage now{};
        EXPECT_EQ(::getrusage(RUSAGE_THREAD, &now), 0);
        return now.ru_minflt;
    };
    const long before = faults();
    void* const volatile memory = std::malloc(bytes); // NOLINT: volatile, else it is left out
    std::memset(memory, 1, bytes);
    std::free(memory); // NOLINT
    return faults() - before;
}

TEST_F(CudaFakeWarmUp, TouchesMemoryForTheThreadThatWillRestore)
{
    if (!can_touch_ahead()) WARMGRAPH_SKIP_LACKING("an allocator and a system by which pages are touched ahead");
    constexpr std::size_t k_bytes = 4U << 20U;
    const auto device = open();
    device->begin_warm_up();
    const auto pages = static_cast<long>(k_bytes / static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)));
    EXPECT_LT(first_touches(k_bytes), pages / 4);
}

TEST_F(CudaFakeWarmUp, ThatFailsIsNobodysFailureAndLeavesNothing)
{
    for (const char* const entry : {"cuModuleLoadData", "cuModuleGetFunction", "cuGraphCreate", "cuGraphAddKernelNode",
                                    "cuGraphInstantiate", "cuGraphExecDestroy", "cuGraphDestroy"}) {
        SCOPED_TRACE(entry);
        const auto device = open();
        const auto module = device->compiler().compile(warmgraph::test::k_fake_cuda_program, "");
        ASSERT_TRUE(module);
        const Bytes image = *(*module)->image();
        fake.fail(entry, 1, 1, CUDA_ERROR_UNKNOWN);
        device->begin_warm_up();
        EXPECT_TRUE(succeeded(device->load(image)));
        EXPECT_TRUE(fake.was_hit());
        fake.reset();
        fake.take_bulk_kernels(FakeCuda::Kernels::as_text_and_fatbin);
    }
}

} // namespace
} // namespace warmgraph::backends::test::cuda_fake_warm_up_test
