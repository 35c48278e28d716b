#include <atomic>
#include <chrono>
#include <thread>

#include "facade_fixture.hpp"

namespace warmgraph::test::threads_test {
namespace {

using Threads = FacadeTest;
constexpr int k_threads = 8;

/// While one call records, the others run eagerly.
TEST_F(Threads, ConcurrentFirstCallsRecordOnce)
{
    Cache cache{options()};
    Function f = add_one(cache);
    std::atomic<int> recorded = 0, replayed = 0, eager = 0, wrong = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < k_threads; ++t)
            threads.emplace_back([&, t] {
                const Buffer x = floats(static_cast<float>(t)), y = device.allocate(k_count * 4);
                Stream stream = device.stream();
                for (int i = 0; i < 20; ++i) {
                    const Outcome outcome = f(stream, {{"x", x}, {"y", y}});
                    recorded += outcome == Outcome::recorded ? 1 : 0;
                    replayed += outcome == Outcome::replayed ? 1 : 0;
                    eager += outcome == Outcome::eager ? 1 : 0;
                }
                stream.synchronize();
                const auto values = y.read<float>();
                for (std::size_t i = 0; i < values.size(); ++i)
                    wrong += values[i] == static_cast<float>(t) + static_cast<float>(i) + 1 ? 0 : 1;
            });
    }
    EXPECT_EQ(recorded, 1);
    EXPECT_EQ(replayed + eager, k_threads * 20 - 1);
    EXPECT_EQ(wrong, 0);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).made, 1U);
    EXPECT_EQ(cache.statistics().of(ArtifactKind::entries).misses, 1U) << "theirs is that of the call that records";
    EXPECT_EQ(f({{"x", m_x}, {"y", m_y}}), Outcome::replayed);
}

TEST_F(Threads, DifferentFunctionsOfOneCacheRecordSideBySide)
{
    Cache cache{options()};
    std::vector<Function> functions;
    for (int t = 0; t < 4; ++t) functions.push_back(add_one(cache, "f" + std::to_string(t)));
    std::atomic<int> recorded = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&, t] {
                const Buffer x = floats(0), y = device.allocate(k_count * 4);
                Stream stream = device.stream();
                recorded +=
                    functions[static_cast<std::size_t>(t)](stream, {{"x", x}, {"y", y}}) == Outcome::recorded ? 1 : 0;
                stream.synchronize();
            });
    }
    EXPECT_EQ(recorded, 4);
    EXPECT_EQ(entries().size(), 4U);
}

TEST_F(Threads, TwoCachesInOneProcessThatMissTogetherRecordOnce)
{
    std::atomic<int> recorded = 0, later = 0;
    {
        std::vector<std::jthread> threads;
        for (int t = 0; t < 4; ++t)
            threads.emplace_back([&] {
                Cache cache{options()};
                Function f = add_one(cache);
                const Buffer x = floats(0), y = device.allocate(k_count * 4);
                Stream stream = device.stream();
                const auto call = [&] {
                    const Outcome outcome = f(stream, {{"x", x}, {"y", y}});
                    stream.synchronize();
                    EXPECT_EQ(y.read<float>()[0], 1.0F);
                    return outcome;
                };
                const Outcome first = call();
                recorded += first == Outcome::recorded ? 1 : 0;
                if (first == Outcome::refused) ADD_FAILURE() << f.report().reason;
                // While another call has the record lock, this call runs eagerly and remembers nothing. So a later call
                // replays.
                while (call() == Outcome::eager) std::this_thread::sleep_for(std::chrono::milliseconds{1});
                later += call() == Outcome::replayed ? 1 : 0;
            });
    }
    EXPECT_EQ(recorded, 1);
    EXPECT_EQ(later, 4);
    EXPECT_EQ(entries().size(), 1U);
}

} // namespace
} // namespace warmgraph::test::threads_test
