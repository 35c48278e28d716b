// Restored graphs come and go: nothing grows, threads do not meet, and a moved buffer is followed exactly.
#include <algorithm>
#include <fstream>
#include <random>
#include <thread>

#include <gtest/gtest.h>

#include <unistd.h>

#include "native.hpp"
#include "temp_dir.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {
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
    [[nodiscard]] CacheOptions options() const
    {
        CacheOptions result;
        result.model = "lifetimes";
        result.cache_dir = (dir.path() / "cache").string();
        result.world_size = 1;
        result.global_rank = 0;
        return result;
    }
    /// y = a + 2 b through scratch memory and a copy, so that every kind of slot is there.
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
    // 800 rounds: a leak of one page in each would be 3.1 MiB, of one 2 MiB chunk on the device 1.6 GiB.
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

/// No scratch memory, whose release would wait: what keeps the code alive is the driver alone.
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

/// G2: random places and alignments in one big buffer, canaries around everything that is written.
TEST_F(Lifetimes, TenThousandMovedCallsTouchExactlyTheirBuffers)
{
    constexpr std::uint32_t k_seed = 20261121;
    constexpr std::uint64_t k_room = 1U << 20U;
    std::mt19937 random{k_seed};
    std::vector<float> initial(k_room / 4);
    for (auto& value : initial) value = static_cast<float>(random() % 1000);
    Buffer room = device.allocate(k_room);
    room.write(initial);
    std::vector<float> expected = initial;

    Cache cache{options()};
    Function f = wrap(cache);
    const std::uint64_t bytes = k_count * 4;
    const auto place = [&](std::uint64_t alignment) { return random() % ((k_room - bytes) / alignment) * alignment; };
    int replayed = 0;
    const auto call = [&](std::uint64_t a, std::uint64_t b, std::uint64_t y) {
        const MemoryRef base = room.memory();
        return f({{"a", MemoryRef{base.address + a, bytes}},
                  {"b", MemoryRef{base.address + b, bytes}},
                  {"y", MemoryRef{base.address + y, bytes}}});
    };
    // Recorded at the weakest alignment, which every other call's satisfies.
    ASSERT_EQ(call(4, 8196, 16388), Outcome::recorded);
    device.synchronize();
    room.write(initial);
    for (int round = 0; round < 10'000; ++round) {
        const std::uint64_t alignment = 4U << (random() % 7);
        std::uint64_t a = place(alignment), b = place(alignment), y = place(alignment);
        const auto apart = [&](std::uint64_t p, std::uint64_t q) { return p + bytes <= q || q + bytes <= p; };
        if (!apart(a, b) || !apart(a, y) || !apart(b, y)) continue; // other guards
        replayed += call(a, b, y) == Outcome::replayed ? 1 : 0;
        for (std::int64_t i = 0; i < k_count; ++i) {
            const auto at = static_cast<std::size_t>(i);
            expected[y / 4 + at] = expected[a / 4 + at] + 2.0F * expected[b / 4 + at];
        }
        if (round % 50 == 0) { // keeps the numbers finite, and compares every byte of the room
            device.synchronize();
            ASSERT_EQ(room.read<float>(), expected) << "seed " << k_seed << ", round " << round;
            room.write(initial);
            expected = initial;
        }
    }
    device.synchronize();
    EXPECT_EQ(room.read<float>(), expected);
    EXPECT_GT(replayed, 9000);
}

} // namespace
} // namespace warmgraph::test
