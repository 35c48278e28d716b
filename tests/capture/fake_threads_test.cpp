// Promise C2 with ThreadSanitizer: threads share one cache and one function, on the fake driver.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>

#include <unistd.h>

#include "cache_options.hpp"
#include "child_process.hpp"
#include "facade_fixture.hpp"
#include "never_destroyed.hpp"
#include "warmgraph/backends/fake.hpp"
#include "warmgraph/backends/registry.hpp"

namespace warmgraph::test::fake_threads_test {
namespace {

constexpr std::int32_t k_count = 32;
constexpr int k_threads = 8;
constexpr int k_calls = 50;

class FakeThreads : public testing::Test {
protected:
    FakeThreads() { backends::register_backend(fake); }
    TempDir dir;
    std::shared_ptr<backends::FakeBackend> fake = backends::make_fake_backend();
};

TEST_F(FakeThreads, CallOneFunctionWithScalarsInStreamsOfTheirOwnAndInTheDefaultOne)
{
    const Device device{"fake:0"};
    const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
    const CacheOptions options = cache_options("toy", dir.path() / "cache");
    Cache cache{options};
    Spec spec = x_to_y(i32, k_count);
    spec.scalars = {scalar("amount", i32, 0, 1000)};
    spec.code = {program};
    Function f = cache.wrap("f", device, spec, [&](Recorder& r) {
        r.stream().copy(r["y"], r["x"], k_count * 4);
        r.stream().launch(program, "add_scalar", {.grid = {1, 1, 1}, .block = {k_count, 1, 1}}, r["y"],
                          r.scalar<std::int32_t>("amount"), k_count);
    });
    std::atomic<int> recorded = 0, refused = 0, wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < k_threads; ++t)
            threads.emplace_back([&, t] {
                const Buffer x = device.upload<std::int32_t>(std::vector<std::int32_t>(k_count, t)),
                             y = device.allocate(k_count * 4);
                Stream own = device.stream();
                for (int i = 0; i < k_calls; ++i) {
                    const Outcome outcome = t % 2 == 0 ? f(own, {{"x", x}, {"y", y}, {"amount", i}})
                                                       : f({{"x", x}, {"y", y}, {"amount", i}});
                    recorded += outcome == Outcome::recorded ? 1 : 0;
                    refused += outcome == Outcome::refused ? 1 : 0;
                    if (t % 2 == 0)
                        own.synchronize();
                    else
                        device.synchronize();
                    wrong += y.read<std::int32_t>() == std::vector<std::int32_t>(k_count, t + i) ? 0 : 1;
                }
            });
    }
    EXPECT_EQ(recorded, 1);
    EXPECT_EQ(refused, 0);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U)
        << "calls beside the one that records run as they are";
}

TEST_F(FakeThreads, CallWhatIsPreloadedAtTheSameTime)
{
    constexpr std::int32_t k_shapes = 12;
    const Device device{"fake:0"};
    const Program program = device.program("small", "kernel add_scalar(memory x, value amount, value n)\n");
    const CacheOptions options = cache_options("toy", dir.path() / "cache");
    Spec spec = x_to_y(i32, k_count, {program});
    const Callable callable = [&](Recorder& r) {
        const auto count = static_cast<std::int32_t>(r.sizes("x")[0]);
        r.stream().copy(r["y"], r["x"], static_cast<std::uint64_t>(count) * 4);
        r.stream().launch(program, "add_scalar", {.grid = {1}, .block = {k_count}}, r["y"], std::int32_t{1}, count);
    };
    const auto call = [&](Function& f, Stream& stream, std::int32_t count) {
        const std::vector<std::int32_t> values(static_cast<std::size_t>(count), 5);
        const Buffer x = device.upload<std::int32_t>(values), y = device.allocate(values.size() * 4);
        const Outcome outcome = f(stream, {{"x", Tensor{x, i32, {count}, {}}}, {"y", Tensor{y, i32, {count}, {}}}});
        stream.synchronize();
        EXPECT_EQ(y.read<std::int32_t>(), std::vector<std::int32_t>(values.size(), 6));
        return outcome;
    };
    {
        Cache cache{options};
        Function f = cache.wrap("f", device, spec, callable);
        Stream stream = device.stream();
        for (std::int32_t count = 1; count <= k_shapes; ++count) EXPECT_EQ(call(f, stream, count), Outcome::recorded);
    }
    Cache cache{options};
    Function f = cache.wrap("f", device, spec, callable);
    std::atomic<int> replayed = 0;
    Preload preload = cache.preload();
    {
        std::vector<std::jthread> threads;
        for (std::int32_t t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                Stream stream = device.stream();
                for (std::int32_t i = 0; i < 2 * k_shapes; ++i)
                    replayed += call(f, stream, 1 + (i * (t + 1) + t) % k_shapes) == Outcome::replayed ? 1 : 0;
            });
    }
    preload.wait();
    EXPECT_EQ(replayed, 4 * 2 * k_shapes);
    EXPECT_EQ(preload.progress().loaded, static_cast<std::size_t>(k_shapes));
    EXPECT_LE(cache.statistics().of(ArtifactKind::entries).hits, static_cast<std::uint64_t>(k_shapes))
        << "each entry counts once";
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 0U);
}

/// Where a program calls std::exit while other threads restore entries. The program never closes its handles.
enum class Exit : std::uint8_t { in_main, in_progress_callback, in_callable };
int exit_while_entries_are_preloaded(const CacheOptions& options, const PreloadOptions& preload, Exit exit)
{
    constexpr std::int32_t k_shapes = 8;
    const Device device{"fake:0"};
    Spec spec = x_to_y(i32, k_count);
    spec.version = "1";
    const Callable callable = [](Recorder& r) {
        if (r.sizes("x")[0] > k_shapes) { // no entry was recorded for this size
            std::this_thread::sleep_for(std::chrono::milliseconds{20});
            std::exit(7);
        }
        r.stream().copy(r["y"], r["x"], static_cast<std::uint64_t>(r.sizes("x")[0]) * 4);
    };
    const Buffer x = device.allocate(4 * k_count), y = device.allocate(4 * k_count);
    {
        Cache cache{options};
        Function f = cache.wrap("f", device, spec, callable);
        for (std::int64_t count = 1; count <= k_shapes; ++count)
            if (f({{"x", Tensor{x, i32, {count}, {}}}, {"y", Tensor{y, i32, {count}, {}}}}) != Outcome::recorded)
                return 3;
    }
    auto& cache = never_destroyed<Cache>(options);
    auto& f = never_destroyed<Function>(cache.wrap("f", device, spec, callable));
    never_destroyed<Preload>(cache.preload(preload));
    while (exit == Exit::in_progress_callback) ::pause(); // only one thread may call std::exit at a time
    if (exit == Exit::in_callable)
        f({{"x", Tensor{x, i32, {k_shapes + 1}, {}}}, {"y", Tensor{y, i32, {k_shapes + 1}, {}}}});
    std::exit(f.report().outcome == Outcome::eager ? 0 : 4);
}

class FakePreloadAtExit : public FakeThreads {
protected:
    /// The exit statuses of five processes, each with its own cache. A process that hangs is ended by SIGALRM.
    std::vector<int> statuses(const PreloadOptions& preload, Exit exit)
    {
        CacheOptions options;
        options.model = "toy";
        options.policy = Policy::read_write;
        options.world_size = 1;
        options.global_rank = 0;
        std::vector<int> result;
        for (int i = 0; i < 5; ++i) {
            options.cache_dir = (dir.path() / std::to_string(m_caches++)).string();
            result.push_back(ChildProcess([&] {
                                 ::alarm(60);
                                 return exit_while_entries_are_preloaded(options, preload, exit);
                             }).wait());
        }
        return result;
    }

private:
    int m_caches = 0;
};

TEST_F(FakePreloadAtExit, ThreadsEndInTheMiddle)
{
    PreloadOptions slowly;
    slowly.threads = 2;
    slowly.progress = [](const PreloadProgress&) { std::this_thread::sleep_for(std::chrono::milliseconds{1}); };
    EXPECT_EQ(statuses(slowly, Exit::in_main), std::vector<int>(5, 0));
}

/// The program exits in the middle of a call. The threads that restore the function's other entries are waiting for
/// this call.
TEST_F(FakePreloadAtExit, ACallableMayBeWhatExits)
{
    PreloadOptions slowly;
    slowly.threads = 2;
    slowly.progress = [](const PreloadProgress&) { std::this_thread::sleep_for(std::chrono::milliseconds{1}); };
    EXPECT_EQ(statuses(slowly, Exit::in_callable), std::vector<int>(5, 7));
}

/// The program exits in a worker thread. The next report and preload() are waiting for this thread.
TEST_F(FakePreloadAtExit, TheProgressCallbackMayBeWhatExits)
{
    PreloadOptions exits;
    exits.threads = 4;
    exits.progress = [](const PreloadProgress& now) {
        std::this_thread::sleep_for(std::chrono::milliseconds{1});
        if (now.loaded == 4) std::exit(5);
    };
    for (const PreloadWait wait : {PreloadWait::first, PreloadWait::all}) {
        exits.wait = wait;
        EXPECT_EQ(statuses(exits, Exit::in_progress_callback), std::vector<int>(5, 5));
    }
}

} // namespace
} // namespace warmgraph::test::fake_threads_test
