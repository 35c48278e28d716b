// Cache::prefetch on CUDA: what is left to the first call, counted by a driver that runs on the host.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "cache/cache_impl.hpp"
#include "cuda_or_fake.hpp"
#include "device/device_impl.hpp"
#include "facade_fixture.hpp"
#include "preload/prepared.hpp"

namespace warmgraph::test::cuda_prefetch_test {
namespace {

constexpr std::int32_t k_count = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

class CudaFakePrefetch : public testing::Test {
protected:
    [[nodiscard]] CacheOptions options(Policy policy = Policy::read_write) const
    {
        CacheOptions options;
        options.model = "toy";
        options.cache_dir = (dir.path() / "cache").string();
        options.policy = policy;
        options.world_size = 1;
        options.global_rank = 0;
        return options;
    }
    /// x + 1, of a table of functions that have one input, outputs and scratch of their own.
    [[nodiscard]] Function wrapped(Cache& cache, const std::string& name) const
    {
        Spec spec;
        spec.inputs = {input("x", i32, {k_count})};
        spec.outputs = {output("y", i32, {k_count})};
        spec.code = {program};
        return cache.wrap(name, device, spec, [this](Recorder& r) {
            const Address scratch = r.alloc("scratch", k_count * 4);
            r.stream().copy(scratch, r["x"], k_count * 4);
            r.stream().copy(r["y"], scratch, k_count * 4);
            r.stream().launch(program, "add_scalar", k_launch, r["y"], 1, k_count);
        });
    }
    Outcome call(Function& f, const Buffer& x, std::int32_t first) const
    {
        const Buffer y = device.allocate(k_count * 4);
        const Outcome outcome = f({{"x", x}, {"y", y}});
        device.synchronize();
        EXPECT_EQ(y.read<std::int32_t>()[2], first + 3);
        return outcome;
    }
    [[nodiscard]] Buffer counted_from(std::int32_t first) const
    {
        std::vector<std::int32_t> values(k_count);
        std::iota(values.begin(), values.end(), first);
        return device.upload<std::int32_t>(values);
    }
    void record(const std::vector<std::string>& names) const
    {
        Cache cache{options()};
        const Buffer x = counted_from(0);
        for (const auto& name : names) {
            Function f = wrapped(cache, name);
            ASSERT_EQ(call(f, x, 0), Outcome::recorded);
        }
    }
    void wait_for_uploads(long count) const
    {
        const auto end = std::chrono::steady_clock::now() + std::chrono::minutes{1};
        while (fake.calls_of("cuGraphUpload") < count) {
            ASSERT_LT(std::chrono::steady_clock::now(), end) << "nobody uploads " << count << " graphs";
            std::this_thread::yield();
        }
    }
    [[nodiscard]] long made_execs() const
    {
        return fake.calls_of("cuGraphInstantiate") + fake.calls_of("cuGraphInstantiateWithParams");
    }
    [[nodiscard]] long moved_nodes() const
    {
        return fake.calls_of("cuGraphExecKernelNodeSetParams") + fake.calls_of("cuGraphExecMemcpyNodeSetParams");
    }

    struct Driver {
        Driver() { choose_driver(); }
    } driver; // before the device
    TempDir dir;
    FakeCuda fake;
    const Device device{"cuda:0"};
    const Program program = device.program("small", k_fake_cuda_program);
};

TEST_F(CudaFakePrefetch, InstantiatesAndUploadsAheadAndTheCallMovesIt)
{
    record({"f"});
    Cache cache{options(Policy::require_hit)};
    fake.reset();
    cache.prefetch("f", device);
    wait_for_uploads(1);
    EXPECT_EQ(made_execs(), 1);
    Function f = wrapped(cache, "f");
    EXPECT_EQ(call(f, counted_from(7), 7), Outcome::replayed);
    EXPECT_EQ(fake.calls_of("cuGraphLaunch"), 1);
    EXPECT_EQ(made_execs(), 1);
    EXPECT_EQ(moved_nodes(), 3) << "input and output are this call's own";
}

std::set<std::string> threads()
{
    std::set<std::string> ids;
    for (const auto& task : std::filesystem::directory_iterator("/proc/self/task")) ids.insert(task.path().filename());
    return ids;
}

TEST_F(CudaFakePrefetch, BeginsTheThreadsThatItsCallWouldBegin)
{
    record({"f"});
    Cache cache{options()}; // one that writes
    fake.reset();
    cache.prefetch("f", device);
    wait_for_uploads(1);
    Function f = wrapped(cache, "f");
    const Buffer x = counted_from(7);
    const std::set<std::string> before = threads();
    EXPECT_EQ(call(f, x, 7), Outcome::replayed);
    for (const std::string& thread : threads()) EXPECT_TRUE(before.contains(thread)) << "another one";
}

TEST_F(CudaFakePrefetch, ATablesGraphsAreBoundToWhatItsFirstCallGave)
{
    record({"t-1", "t-2", "t-3"});
    Cache cache{options(Policy::require_hit)};
    const Buffer x = counted_from(7), elsewhere = counted_from(20);
    Function first = wrapped(cache, "t-1");
    ASSERT_EQ(call(first, x, 7), Outcome::replayed);
    fake.reset();
    cache.prefetch("t-*", device);
    wait_for_uploads(2);
    EXPECT_EQ(made_execs(), 2);
    Function second = wrapped(cache, "t-2");
    EXPECT_EQ(call(second, x, 7), Outcome::replayed);
    const long moved = moved_nodes();
    EXPECT_EQ(moved, 2) << "the output is this call's own, and both nodes have it";
    Function third = wrapped(cache, "t-3");
    EXPECT_EQ(call(third, elsewhere, 20), Outcome::replayed) << "a guess that is wrong is no wrong answer";
    EXPECT_EQ(call(third, x, 7), Outcome::replayed);
    EXPECT_EQ(made_execs(), 2);
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(CudaFakePrefetch, WhatFoundNoRoomIsRestoredWhereItIsAskedForAgain)
{
    record({"t-1", "t-2", "t-3"});
    Cache cache{options(Policy::require_hit)};
    Cache::Impl& impl = *CacheAccess::impl(cache);
    const auto& backend = *DeviceAccess::impl(device)->device;
    cachefmt::Graph large;
    large.regions.resize(1);
    large.regions[0].kind = cachefmt::RegionKind::arena;
    large.regions[0].size = std::max<std::uint64_t>(256ULL << 20U, backend.limits().memory / 100);
    auto all_room = impl.preload.prepared.turn({{"model", "rank", "f"}, {}}, large, backend, {}, {});
    ASSERT_TRUE(all_room);
    fake.reset();
    cache.prefetch("t-*", device);
    const Buffer x = counted_from(7);
    Function first = wrapped(cache, "t-1");
    ASSERT_EQ(call(first, x, 7), Outcome::replayed);
    EXPECT_EQ(made_execs(), 1) << "the call's own: nobody waited for room before it";
    const long uploads = fake.calls_of("cuGraphUpload");
    all_room.reset();
    cache.prefetch("t-*", device);
    wait_for_uploads(uploads + 2);
    EXPECT_EQ(made_execs(), 3);
    Function second = wrapped(cache, "t-2");
    EXPECT_EQ(call(second, x, 7), Outcome::replayed);
    EXPECT_EQ(made_execs(), 3);
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

class PreparedRoom : public CudaFakePrefetch {
protected:
    [[nodiscard]] std::unique_ptr<PreparedGraphs::Turn> turn(std::uint64_t mib, std::chrono::milliseconds patience,
                                                             const std::stop_token& stop = {})
    {
        cachefmt::Graph graph;
        graph.regions.resize(1);
        graph.regions[0].kind = cachefmt::RegionKind::arena;
        graph.regions[0].size = mib << 20U;
        return graphs.turn({{"model", "rank", "f"}, {}}, graph, *DeviceAccess::impl(device)->device,
                           std::chrono::steady_clock::now() + patience, stop);
    }

    /// MiB: a hundredth of the device's, and 256 on a small one.
    [[nodiscard]] std::uint64_t room() const
    {
        constexpr std::uint64_t k_least = 256, k_part = 100;
        return std::max(k_least, (DeviceAccess::impl(device)->device->limits().memory / k_part) >> 20U);
    }

    static constexpr std::chrono::milliseconds k_none{0};
    static constexpr std::chrono::minutes k_long{5};
    PreparedGraphs graphs;
};

TEST_F(PreparedRoom, IsForAllOfThemTogether)
{
    const std::uint64_t part = room() / 5 * 2, rest = room() - 2 * part;
    const auto first = turn(part, k_none), second = turn(part, k_none);
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_FALSE(turn(part, k_none));
    EXPECT_TRUE(turn(rest, k_none)) << "which goes at once";
    EXPECT_TRUE(turn(rest, k_none));
    EXPECT_FALSE(turn(rest + 1, k_none));
    EXPECT_FALSE(turn(room() + 1, k_long)) << "it never fits, so nobody waits";
}

TEST_F(PreparedRoom, IsWaitedForUntilOneGoesOrNobodyWantsItAnyMore)
{
    auto first = turn(room(), k_none);
    ASSERT_TRUE(first);
    std::stop_source stop;
    std::unique_ptr<PreparedGraphs::Turn> stopped, later;
    {
        const std::jthread one{[&] { stopped = turn(room(), k_long, stop.get_token()); }};
        stop.request_stop();
    }
    EXPECT_FALSE(stopped);
    {
        const std::jthread one{[&] { later = turn(room(), k_long); }};
        std::this_thread::sleep_for(std::chrono::milliseconds{20}); // it waits by then, most times
        first.reset();
    }
    EXPECT_TRUE(later);
}

} // namespace
} // namespace warmgraph::test::cuda_prefetch_test
