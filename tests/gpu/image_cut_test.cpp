// Device code that the tracker kept is cut down, loaded and run. Only the driver can show that the cut code works.
#include <array>
#include <initializer_list>
#include <memory>
#include <stdexcept>

#include <dlfcn.h>

#include "code/image_tracker.hpp"
#include "cubin/cubin.hpp"
#include "expect_error.hpp"
#include "native.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/backends/cuda.hpp"
#include "warmgraph/backends/recording.hpp"

namespace warmgraph::test::image_cut_test {
namespace {

using namespace backends; // NOLINT: these tests are about what is in it
using cuda::ImageTracker;

constexpr const char* k_source = R"(
__device__ int d_bias[2] = {3, 4};
__constant__ int c_factor = 5;
__device__ __noinline__ int biased(int x) { return x * c_factor + d_bias[x & 1]; }
extern "C" __global__ void fill(int* y) { y[threadIdx.x] = biased(threadIdx.x); }
extern "C" __global__ void reversed(int* y)
{
    extern __shared__ int room[];
    room[blockDim.x - 1 - threadIdx.x] = biased(threadIdx.x);
    __syncthreads();
    y[threadIdx.x] = room[threadIdx.x];
}
extern "C" __global__ void choose(int* y)
{
    switch (threadIdx.x & 7) {
    case 0: y[threadIdx.x] = 10; break;
    case 1: y[threadIdx.x] = biased(7); break;
    case 2: y[threadIdx.x] = __float2int_rn(sinf(threadIdx.x) * 100); break;
    case 3: y[threadIdx.x] = threadIdx.x / 3; break;
    case 4: y[threadIdx.x] = __clz(threadIdx.x); break;
    case 5: y[threadIdx.x] = 6; break;
    default: y[threadIdx.x] = -1;
    }
}
)";
constexpr std::size_t k_threads = 64;

class Images : public testing::Test {
protected:
    // Must run before this process loads other device code.
    static void SetUpTestSuite()
    {
        s_device = take(make_cuda_backend()->open("0"));
        const auto prepared = s_device->recording().prepare_recording();
        ASSERT_TRUE(succeeded(prepared));
        ASSERT_TRUE(ImageTracker::is_running());
    }
    static void TearDownTestSuite() { s_device.reset(); }

    static std::vector<int> run(Module& module, const std::string& kernel)
    {
        const MemoryRef memory = take(s_device->allocate(k_threads * sizeof(int)));
        std::vector<int> values(k_threads, -77);
        EXPECT_TRUE(succeeded(s_device->upload(memory.address, std::as_bytes(std::span(values)))));
        const auto stream = take(s_device->create_stream());
        RawKernel work{
            .module = &module, .kernel = kernel, .grid = {1, 1, 1}, .block = {k_threads, 1, 1}, .params = {}};
        work.params.push_back({.kind = ParamKind::memory, .value = {}, .address = memory.address});
        work.shared_bytes = k_threads * sizeof(int);
        EXPECT_TRUE(succeeded(stream->launch(work)));
        EXPECT_TRUE(succeeded(stream->synchronize()));
        EXPECT_TRUE(succeeded(s_device->download(std::as_writable_bytes(std::span(values)), memory.address)));
        s_device->release(memory);
        return values;
    }

    static inline std::shared_ptr<Device> s_device;
};

TEST_F(Images, ACutImageLoadsAndGivesTheSameResult)
{
    const auto whole = take(s_device->compiler().compile(k_source, ""));
    const Bytes all = take(whole->image());
    for (const std::string kernel : {"fill", "reversed", "choose"}) {
        const Bytes cut = take(whole->image_of(std::array{kernel}));
        EXPECT_LT(cut.size(), all.size()) << kernel;
        EXPECT_THAT(take(cuda::kernels_of(cut)), ElementsAre(kernel));
        auto loaded = s_device->load(cut);
        ASSERT_TRUE(succeeded(loaded)) << kernel;
        EXPECT_EQ(run(**loaded, kernel), run(*whole, kernel)) << kernel;
        EXPECT_EQ(take((*loaded)->param_count(kernel)), 1U);
    }
}

TEST_F(Images, ACutImageKeepsItsVariables)
{
    const auto whole = take(s_device->compiler().compile(k_source, ""));
    const auto cut = take(s_device->load(take(whole->image_of(std::array{std::string("fill")}))));
    EXPECT_TRUE(take(cut->changed_variables()).empty());
    const int factor = 9;
    const ByteView bytes = std::as_bytes(std::span(&factor, 1));
    const cachefmt::ModuleVariable changed{"c_factor", Bytes(bytes.begin(), bytes.end())};
    ASSERT_TRUE(succeeded(cut->write_variables(std::span(&changed, 1))));
    EXPECT_EQ(run(*cut, "fill")[2], 2 * 9 + 3);
    EXPECT_THAT(take(cut->changed_variables()), ElementsAre(changed));
}

TEST_F(Images, OfModulesWithEqualKernelNamesAreToldApart)
{
    const Native& native = Native::instance();
    const Bytes plus = Native::compile(R"(extern "C" __global__ void apply(int* y) { *y += 3; })");
    const Bytes times = Native::compile(R"(extern "C" __global__ void apply(int* y) { *y *= 5; })");
    const CUmodule first = native.load(plus), second = native.load(times), third = native.load(plus);
    for (const CUmodule module : {first, second, third}) static_cast<void>(native.function(module, "apply"));
    const auto image = [](CUmodule module) {
        const auto kept = ImageTracker::image_of(module);
        return kept ? *kept : Bytes{};
    };
    EXPECT_EQ(image(first), plus);
    EXPECT_EQ(image(second), times);
    EXPECT_EQ(image(third), plus);

    native.check(native.driver().cuModuleUnload(second), "cuModuleUnload");
    EXPECT_EQ(ImageTracker::image_of(second), nullptr);
    const CUmodule fourth = native.load(plus);
    static_cast<void>(native.function(fourth, "apply"));
    EXPECT_EQ(image(fourth), plus) << "whatever handle it got";
}

TEST_F(Images, OfALazilyLoadedLibraryAreKept)
{
    const Native& native = Native::instance();
    const Bytes cubin = Native::compile(R"(extern "C" __global__ void lazy(int* y) { *y += 3; })");
    CUlibrary library = nullptr;
    native.check(native.find<decltype(&cuLibraryLoadData)>("cuLibraryLoadData")(&library, cubin.data(), nullptr,
                                                                                nullptr, 0, nullptr, nullptr, 0),
                 "cuLibraryLoadData");
    CUkernel kernel = nullptr;
    native.check(native.find<decltype(&cuLibraryGetKernel)>("cuLibraryGetKernel")(&kernel, library, "lazy"),
                 "cuLibraryGetKernel");
    CUfunction function = nullptr;
    native.check(native.driver().cuKernelGetFunction(&function, kernel), "cuKernelGetFunction");
    CUmodule module = nullptr;
    native.check(native.driver().cuFuncGetModule(&module, function), "cuFuncGetModule");
    const auto kept = ImageTracker::image_of(module);
    ASSERT_NE(kept, nullptr);
    EXPECT_EQ(*kept, cubin);
}

TEST_F(Images, OfAProductOfCublasAreCutAndRun)
{
    void* library = nullptr;
    for (const char* name : {"libcublas.so.13", "libcublas.so.12", "libcublas.so"})
        if (library == nullptr) library = ::dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    ASSERT_NE(library, nullptr) << ::dlerror();
    using Sgemm = int (*)(void*, int, int, int, int, int, const float*, const float*, int, const float*, int,
                          const float*, float*, int);
    const auto create = reinterpret_cast<int (*)(void**)>(::dlsym(library, "cublasCreate_v2"));
    const auto set_stream = reinterpret_cast<int (*)(void*, void*)>(::dlsym(library, "cublasSetStream_v2"));
    const auto sgemm = reinterpret_cast<Sgemm>(::dlsym(library, "cublasSgemm_v2"));
    ASSERT_TRUE(create != nullptr && set_stream != nullptr && sgemm != nullptr);

    static_cast<void>(Native::instance()); // makes the device's context current in this thread
    constexpr int k_side = 256;
    constexpr std::size_t k_bytes = sizeof(float) * k_side * k_side;
    const MemoryRef a = take(s_device->allocate(k_bytes)), b = take(s_device->allocate(k_bytes)),
                    c = take(s_device->allocate(k_bytes));
    std::vector<float> values(k_bytes / sizeof(float));
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 13) - 6;
    for (const MemoryRef& memory : {a, b})
        ASSERT_TRUE(succeeded(s_device->upload(memory.address, std::as_bytes(std::span(values)))));

    const auto stream = take(s_device->create_stream());
    void* handle = nullptr;
    ASSERT_EQ(create(&handle), 0);
    ASSERT_EQ(set_stream(handle, stream->native()), 0);
    // Without a workspace, cuBLAS would allocate one inside the captured graph.
    const auto set_workspace =
        reinterpret_cast<int (*)(void*, void*, std::size_t)>(::dlsym(library, "cublasSetWorkspace_v2"));
    ASSERT_NE(set_workspace, nullptr);
    constexpr std::size_t k_workspace = 32U << 20U;
    const MemoryRef workspace = take(s_device->allocate(k_workspace));
    ASSERT_EQ(set_workspace(handle, workspace.address.pointer(), k_workspace), 0);
    const auto multiply = [&] {
        const float one = 1, zero = 0;
        return sgemm(handle, 0, 0, k_side, k_side, k_side, &one, a.address.pointer<float>(), k_side,
                     b.address.pointer<float>(), k_side, &zero, c.address.pointer<float>(), k_side);
    };
    const auto result = [&] {
        std::vector<float> out(values.size());
        EXPECT_TRUE(succeeded(stream->synchronize()));
        EXPECT_TRUE(succeeded(s_device->download(std::as_writable_bytes(std::span(out)), c.address)));
        return out;
    };
    ASSERT_EQ(multiply(), 0);
    const std::vector<float> expected = result();
    ASSERT_TRUE(succeeded(stream->begin_capture()));
    ASSERT_EQ(multiply(), 0);
    RawGraph graph = take(stream->end_capture());

    std::vector<std::unique_ptr<Module>> modules;
    for (RawNode& node : graph.nodes) {
        auto* const kernel = std::get_if<RawKernel>(&node.work);
        if (kernel == nullptr) continue;
        const Bytes whole = take(kernel->module->image());
        const Bytes cut = take(kernel->module->image_of(std::array{kernel->kernel}));
        EXPECT_THAT(take(cuda::kernels_of(cut)), ElementsAre(kernel->kernel));
        RecordProperty("whole_bytes", static_cast<int>(whole.size()));
        RecordProperty("cut_bytes", static_cast<int>(cut.size()));
        EXPECT_TRUE(cut.size() < whole.size() || take(cuda::kernels_of(whole)).size() == 1) << kernel->kernel;
        modules.push_back(take(s_device->load(cut)));
        kernel->module = modules.back().get();
    }
    ASSERT_FALSE(modules.empty());

    ASSERT_TRUE(succeeded(s_device->upload(c.address, Bytes(k_bytes))));
    const auto exec = take(s_device->instantiate(graph));
    ASSERT_TRUE(succeeded(exec->launch(*stream)));
    EXPECT_EQ(result(), expected);
    for (const MemoryRef& memory : {a, b, c, workspace}) s_device->release(memory);
}

} // namespace
} // namespace warmgraph::test::image_cut_test
