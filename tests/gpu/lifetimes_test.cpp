// Makes and destroys restored graphs: memory must not grow, and threads must not disturb each other.
#include <filesystem>
#include <fstream>
#include <thread>

#include <unistd.h>

#include "cache_options.hpp"
#include "native.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test::lifetimes_test {
namespace {

constexpr const char* k_kernels = R"(
extern "C" __global__ void add(const float* a, const float* b, float* y, int n, float factor) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) y[i] = a[i] + factor * b[i];
})";
constexpr std::int64_t k_count = 1000;
constexpr Launch k_launch{.grid = {8, 1, 1}, .block = {128, 1, 1}};

class Lifetimes : public testing::Test {
protected:
    [[nodiscard]] CacheOptions options() const { return cache_options("lifetimes", dir.path() / "cache"); }
    /// The function y = a + 2 b. It goes through scratch memory and a copy, so that the graph has every kind of slot.
    [[nodiscard]] Function wrap(Cache& cache, const std::string& name = "add") const
    {
        Spec spec;
        spec.inputs = {input("a", f32, {k_count}), input("b", f32, {k_count})};
        spec.outputs = {output("y", f32, {k_count})};
        spec.code = {program};
        return cache.wrap(name, device, spec, [this](Recorder& r) {
            const Address sum = r.alloc("sum", k_count * 4);
            r.stream().launch(program, "add", k_launch, r["a"], r["b"], sum, static_cast<std::int32_t>(k_count), 2.0F);
            r.stream().copy(r["y"], sum, k_count * 4);
        });
    }
    static long resident_kib()
    {
        long pages = 0, resident = 0;
        std::ifstream{"/proc/self/statm"} >> pages >> resident;
        return resident * (::sysconf(_SC_PAGESIZE) / 1024);
    }
    static std::size_t free_device_memory()
    {
        std::size_t free = 0, total = 0;
        const Native& native = Native::instance();
        native.check(native.find<decltype(&cuMemGetInfo)>("cuMemGetInfo")(&free, &total), "cuMemGetInfo");
        return free;
    }

    TempDir dir;
    Device device{"cuda:0"};
    Program program = device.program("add", k_kernels);
};

TEST_F(Lifetimes, AThousandRoundsOfLoadingAndDestroyingGrowNothing)
{
    const std::vector<float> ones(k_count, 1.0F);
    const Buffer a = device.upload<float>(ones), b = device.upload<float>(ones), y = device.allocate(k_count * 4);
    {
        Cache cache{options()};
        Function f = wrap(cache);
        ASSERT_EQ(f({{"a", a}, {"b", b}, {"y", y}}), Outcome::recorded);
    }
    long host = 0;
    std::size_t free = 0;
    for (int round = 0; round < 1000; ++round) {
        Cache cache{options()};
        Function f = wrap(cache);
        ASSERT_EQ(f({{"a", a}, {"b", b}, {"y", y}}), Outcome::replayed) << round;
        device.synchronize();
        if (round == 200) {
            host = resident_kib();
            free = free_device_memory();
        }
    }
    EXPECT_EQ(y.read<float>(), std::vector<float>(k_count, 3.0F));
    // After 800 rounds, a leak of one page per round would be 3.1 MiB; a leak of one 2 MiB chunk on the device would be
    // 1.6 GiB.
    EXPECT_LT(resident_kib() - host, 2048);
    EXPECT_LE(free, free_device_memory() + (4U << 20U));
}

TEST_F(Lifetimes, EightThreadsRestoreAtOnce)
{
    const std::vector<float> ones(k_count, 1.0F);
    const Buffer a = device.upload<float>(ones), b = device.upload<float>(ones);
    {
        Cache cache{options()};
        for (int i = 0; i < 8; ++i) {
            const Buffer y = device.allocate(k_count * 4);
            Function f = wrap(cache, "add" + std::to_string(i));
            ASSERT_EQ(f({{"a", a}, {"b", b}, {"y", y}}), Outcome::recorded);
            device.synchronize();
        }
    }
    Cache cache{options()};
    std::vector<std::string> failures(8);
    {
        std::vector<std::jthread> threads;
        for (std::size_t i = 0; i < failures.size(); ++i)
            threads.emplace_back([&, i] {
                try {
                    Stream stream = device.stream();
                    const Buffer y = device.allocate(k_count * 4);
                    Function f = wrap(cache, "add" + std::to_string(i));
                    if (f(stream, {{"a", a}, {"b", b}, {"y", y}}) != Outcome::replayed)
                        failures[i] = f.report().reason + " (no hit)";
                    stream.synchronize();
                    if (y.read<float>() != std::vector<float>(k_count, 3.0F)) failures[i] = "wrong result";
                } catch (const std::exception& error) {
                    failures[i] = error.what();
                }
            });
    }
    EXPECT_EQ(failures, std::vector<std::string>(8));
}

/// Each shape has its own exec. A call must use its shape's exec, in whatever order the execs were opened.
TEST_F(Lifetimes, SixtyFourShapesOpenedAheadGiveTheirOwnResults)
{
    constexpr std::int64_t k_shapes = 64;
    constexpr std::uint32_t k_block = 100;
    const auto any_size = [&](Cache& cache) {
        Spec spec;
        spec.inputs = {input("a", f32, {k_count}), input("b", f32, {k_count})};
        spec.outputs = {output("y", f32, {k_count})};
        spec.code = {program};
        return cache.wrap("any_size", device, spec, [this](Recorder& r) {
            const auto count = static_cast<std::int32_t>(r.sizes("a")[0]);
            const Launch launch{.grid = {static_cast<std::uint32_t>(count) / k_block, 1, 1}, .block = {k_block, 1, 1}};
            const Address sum = r.alloc("sum", static_cast<std::uint64_t>(count) * 4);
            for (std::int32_t i = 0; i < 4 + count / 100; ++i) // the graphs get different lengths
                r.stream().launch(program, "add", launch, i == 0 ? r["a"] : sum, r["b"], sum, count, 2.0F);
            r.stream().copy(r["y"], sum, static_cast<std::uint64_t>(count) * 4);
        });
    };
    const auto call = [&](Function& f, std::int64_t shape, float first) {
        const std::int64_t count = (shape + 1) * k_block;
        const auto values = [&](float value) { return std::vector<float>(static_cast<std::size_t>(count), value); };
        const Buffer a = device.upload<float>(values(first)), b = device.upload<float>(values(1.0F));
        const Buffer y = device.allocate(static_cast<std::uint64_t>(count) * 4);
        const auto tensor = [&](const Buffer& buffer) { return Tensor{buffer, f32, {count}, {}}; };
        const Outcome outcome = f({{"a", tensor(a)}, {"b", tensor(b)}, {"y", tensor(y)}});
        device.synchronize();
        EXPECT_EQ(y.read<float>(), values(first + 2.0F * static_cast<float>(4 + count / 100))) << count;
        return outcome;
    };
    {
        Cache cache{options()};
        Function f = any_size(cache);
        for (std::int64_t shape = 0; shape < k_shapes; ++shape)
            ASSERT_EQ(call(f, shape, 1.0F), Outcome::recorded) << f.report().reason;
    }
    CacheOptions with = options();
    with.policy = Policy::require_hit;
    Cache cache{with};
    Function f = any_size(cache);
    const Preload preload = cache.preload({.wait = PreloadWait::all});
    EXPECT_EQ(preload.progress().loaded, static_cast<std::size_t>(k_shapes));
    std::filesystem::remove_all(dir.path() / "cache"); // from now on, nothing can be read from the cache
    for (int round = 0; round < 2; ++round)
        for (std::int64_t i = 0; i < k_shapes; ++i) // 37 and 64 have no common divisor, so every shape is called once
            ASSERT_EQ(call(f, i * 37 % k_shapes, static_cast<float>(i + round)), Outcome::replayed);
    EXPECT_EQ(cache.statistics().images_loaded, 1U) << "images are shared";
}

/// The function has no scratch memory, whose release would wait for the work. So only the driver keeps the code alive.
TEST_F(Lifetimes, AFunctionAndItsCacheMayGoWhileTheirWorkRuns)
{
    const Program slow = device.program("slow", R"(
extern "C" __global__ void slow(float* y) {
    long long start = clock64();
    while (clock64() - start < 20000000) {}
    y[blockIdx.x * blockDim.x + threadIdx.x] += 1;
})");
    Buffer y = device.upload<float>(std::vector<float>(k_count, 0.0F));
    for (int round = 0; round < 5; ++round) {
        Cache cache{options()};
        Spec spec;
        spec.states = {state("y", y)};
        spec.code = {slow};
        Function f = cache.wrap("slow", device, spec, [&](Recorder& r) {
            for (int i = 0; i < 4; ++i)
                r.stream().launch(slow, "slow", {.grid = {10, 1, 1}, .block = {100, 1, 1}}, r["y"]);
        });
        ASSERT_EQ(f({}), round == 0 ? Outcome::recorded : Outcome::replayed);
    }
    device.synchronize();
    EXPECT_EQ(y.read<float>(), std::vector<float>(k_count, 20.0F));
}

/// The driver cannot update a copy of several rows in an exec. So each call makes a new exec while earlier launches
/// still run. There are more calls than execs that are kept.
TEST_F(Lifetimes, ExecsThatAreReplacedFinishTheirLaunches)
{
    constexpr std::size_t k_row = 200, k_rows = k_count * 4 / (2 * k_row);
    constexpr int k_calls = 20;
    const Program slow = device.program("slow", R"(
extern "C" __global__ void slow(const float* x, float* y) {
    long long start = clock64();
    while (clock64() - start < 2000000) {}
    y[blockIdx.x * blockDim.x + threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x] + 1;
})");
    Cache cache{options()};
    Spec spec = x_to_y(f32, k_count, {slow});
    Function f = cache.wrap("rows", device, spec, [&](Recorder& r) {
        const Address scratch = r.alloc("scratch", k_count * 4);
        r.stream().launch(slow, "slow", {.grid = {10, 1, 1}, .block = {100, 1, 1}}, r["x"], scratch);
        const Native& native = Native::instance();
        const auto copy_rows = native.find<decltype(&cuMemcpy2DAsync)>("cuMemcpy2DAsync");
        for (const std::size_t half : {std::size_t{0}, k_row}) {
            CUDA_MEMCPY2D copy{};
            copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
            copy.srcDevice = scratch.flat() + half;
            copy.dstDevice = r["y"].flat() + half;
            copy.srcPitch = copy.dstPitch = 2 * k_row;
            copy.WidthInBytes = k_row;
            copy.Height = k_rows;
            native.check(copy_rows(&copy, static_cast<CUstream>(r.stream().native())), "cuMemcpy2DAsync");
        }
    });
    std::vector<Buffer> xs, ys;
    for (int i = 0; i < k_calls; ++i) {
        xs.push_back(device.upload<float>(std::vector<float>(k_count, static_cast<float>(i))));
        ys.push_back(device.allocate(k_count * 4));
    }
    ASSERT_EQ(f({{"x", xs[0]}, {"y", ys[0]}}), Outcome::recorded) << f.report().reason;
    for (int round = 0; round < 2; ++round)
        for (std::size_t i = 0; i < xs.size(); ++i) ASSERT_EQ(f({{"x", xs[i]}, {"y", ys[i]}}), Outcome::replayed);
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
    device.synchronize();
    for (int i = 0; i < k_calls; ++i)
        EXPECT_EQ(ys[static_cast<std::size_t>(i)].read<float>(),
                  std::vector<float>(k_count, static_cast<float>(i + 1)));
}

} // namespace
} // namespace warmgraph::test::lifetimes_test
