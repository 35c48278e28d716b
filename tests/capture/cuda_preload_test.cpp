// Cache::preload on CUDA: how much work is left for the first call. The fake driver, which runs on the host, counts it.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <thread>

#include "cache/cache_impl.hpp"
#include "cuda_or_fake.hpp"
#include "facade_fixture.hpp"
#include "preload_by_name.hpp"
#include "warmgraph/device/device_impl.hpp"
#include "warmgraph/preload/preloaded_graphs.hpp"

namespace warmgraph::test::cuda_preload_test {
namespace {

constexpr std::int32_t k_count = 32;
constexpr Launch k_launch{.grid = {1, 1, 1}, .block = {k_count, 1, 1}};

class CudaFakePreload : public testing::Test {
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
    /// The function x + 1. Each call of wrapped() makes a function with its own input, output and scratch, as in a
    /// table.
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
    } driver; // the fake driver must be chosen before the device is opened
    TempDir dir;
    FakeCuda fake;
    const Device device{"cuda:0"};
    const Program program = device.program("small", k_fake_cuda_program);
};

TEST_F(CudaFakePreload, InstantiatesAndUploadsAheadAndTheCallMovesIt)
{
    record({"f"});
    Cache cache{options(Policy::require_hit)};
    fake.reset();
    preload_by_name(cache, "f", device);
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

TEST_F(CudaFakePreload, BeginsTheThreadsThatItsCallWouldBegin)
{
    record({"f"});
    Cache cache{options()}; // a cache that may write
    fake.reset();
    preload_by_name(cache, "f", device);
    wait_for_uploads(1);
    Function f = wrapped(cache, "f");
    const Buffer x = counted_from(7);
    const std::set<std::string> before = threads();
    EXPECT_EQ(call(f, x, 7), Outcome::replayed);
    for (const std::string& thread : threads()) EXPECT_TRUE(before.contains(thread)) << "another one";
}

TEST_F(CudaFakePreload, ATablesGraphsAreBoundToWhatItsFirstCallGave)
{
    record({"t-1", "t-2", "t-3"});
    Cache cache{options(Policy::require_hit)};
    const Buffer x = counted_from(7), elsewhere = counted_from(20);
    Function first = wrapped(cache, "t-1");
    ASSERT_EQ(call(first, x, 7), Outcome::replayed);
    fake.reset();
    preload_by_name(cache, "t-*", device);
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

TEST_F(CudaFakePreload, WhatFoundNoRoomIsRestoredWhereItIsAskedForAgain)
{
    record({"t-1", "t-2", "t-3"});
    Cache cache{options(Policy::require_hit)};
    Cache::Impl& impl = *CacheAccess::impl(cache);
    const auto& backend = *DeviceAccess::impl(device)->device;
    const std::uint64_t room = std::max<std::uint64_t>(256ULL << 20U, backend.limits().memory / 100);
    auto all_room = impl.preload.state.graphs.claim({{"model", "rank", "f"}, {}}, room, backend, {}, {});
    ASSERT_TRUE(all_room);
    fake.reset();
    preload_by_name(cache, "t-*", device);
    const Buffer x = counted_from(7);
    Function first = wrapped(cache, "t-1");
    ASSERT_EQ(call(first, x, 7), Outcome::replayed);
    EXPECT_EQ(made_execs(), 1) << "the call's own: nobody waited for room before it";
    const long uploads = fake.calls_of("cuGraphUpload");
    all_room.reset();
    preload_by_name(cache, "t-*", device);
    wait_for_uploads(uploads + 2);
    EXPECT_EQ(made_execs(), 3);
    Function second = wrapped(cache, "t-2");
    EXPECT_EQ(call(second, x, 7), Outcome::replayed);
    EXPECT_EQ(made_execs(), 3);
    EXPECT_EQ(cache.statistics().cache_faults, 0U);
}

TEST_F(CudaFakePreload, RestsWhileAFirstCallIsUnderWay)
{
    using Clock = std::chrono::steady_clock;
    PreloadedGraphs graphs;
    const auto& backend = *DeviceAccess::impl(device)->device;
    const cachefmt::EntryKey key{{"model", "rank", "f"}, {}};
    const auto rested = [&](const std::stop_token& stop = {}) {
        const auto start = Clock::now();
        graphs.let_first_calls_pass(key, stop);
        return Clock::now() - start;
    };
    constexpr std::chrono::milliseconds k_rest{100};
    EXPECT_LT(rested(), k_rest) << "nobody calls";
    std::optional<PreloadedGraphs::PreloadPause> call{std::in_place, graphs};
    EXPECT_GE(rested(), k_rest) << "not for ever: the call may wait for the outside";
    std::stop_source stop;
    stop.request_stop();
    EXPECT_LT(rested(stop.get_token()), k_rest);

    auto claim = graphs.claim_for(7, key, backend);
    std::jthread taker{[&] { EXPECT_FALSE(graphs.take(7, key, backend)) << "nobody restored it"; }};
    while (rested() >= k_rest) std::this_thread::yield(); // the thread waits when it has no rest
    claim.reset();
    taker.join();
    EXPECT_GE(rested(), k_rest);
    call.reset();
    EXPECT_LT(rested(), k_rest);
}

TEST_F(CudaFakePreload, AGraphForOneFunctionIsNoOthers)
{
    PreloadedGraphs graphs;
    const auto& backend = *DeviceAccess::impl(device)->device;
    const cachefmt::EntryKey key{{"model", "rank", "f"}, {}};
    const auto claim = graphs.claim_for(7, key, backend);
    EXPECT_TRUE(claim);
    EXPECT_FALSE(graphs.claim_for(7, key, backend)) << "it is under way";
    EXPECT_TRUE(graphs.has(7, key, backend));
    EXPECT_FALSE(graphs.has(8, key, backend));
    EXPECT_FALSE(graphs.take(8, key, backend)) << "and does not wait for it";
    graphs.forget(key.function, backend);
    EXPECT_TRUE(graphs.has(7, key, backend)) << "it is not for everybody";
    graphs.forget(7);
    EXPECT_FALSE(graphs.has(7, key, backend));
}

class PreloadRoom : public CudaFakePreload {
protected:
    [[nodiscard]] std::unique_ptr<PreloadedGraphs::RestoreClaim> claim(std::uint64_t mib,
                                                                       std::chrono::milliseconds patience,
                                                                       const std::stop_token& stop = {})
    {
        return graphs.claim({{"model", "rank", fmt::format("f{}", m_count++)}, {}}, mib << 20U,
                            *DeviceAccess::impl(device)->device, std::chrono::steady_clock::now() + patience, stop);
    }

    /// The limit in MiB: one percent of the device's memory, but at least 256.
    [[nodiscard]] std::uint64_t room() const
    {
        constexpr std::uint64_t k_least = 256, k_part = 100;
        return std::max(k_least, (DeviceAccess::impl(device)->device->limits().memory / k_part) >> 20U);
    }

    static constexpr std::chrono::milliseconds k_none{0};
    static constexpr std::chrono::minutes k_long{5};
    PreloadedGraphs graphs;

private:
    std::atomic<int> m_count = 0; ///< the next number in a function's name
};

TEST_F(PreloadRoom, IsForAllOfThemTogether)
{
    const std::uint64_t part = room() / 5 * 2, rest = room() - 2 * part;
    const auto first = claim(part, k_none), second = claim(part, k_none);
    EXPECT_TRUE(first);
    EXPECT_TRUE(second);
    EXPECT_FALSE(claim(part, k_none));
    EXPECT_TRUE(claim(rest, k_none)) << "which goes at once";
    EXPECT_TRUE(claim(rest, k_none));
    EXPECT_FALSE(claim(rest + 1, k_none));
    EXPECT_FALSE(claim(room() + 1, k_long)) << "it never fits, so nobody waits";
}

TEST_F(PreloadRoom, IsWaitedForUntilOneGoesOrNobodyWantsItAnyMore)
{
    auto first = claim(room(), k_none);
    ASSERT_TRUE(first);
    std::stop_source stop;
    std::unique_ptr<PreloadedGraphs::RestoreClaim> stopped, later;
    {
        const std::jthread one{[&] { stopped = claim(room(), k_long, stop.get_token()); }};
        stop.request_stop();
    }
    EXPECT_FALSE(stopped);
    {
        const std::jthread one{[&] { later = claim(room(), k_long); }};
        std::this_thread::sleep_for(std::chrono::milliseconds{20}); // after this time the thread usually waits
        first.reset();
    }
    EXPECT_TRUE(later);
}

} // namespace
} // namespace warmgraph::test::cuda_preload_test
