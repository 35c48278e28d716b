// The counters of a process are true. For a hit, the saved time is the time of the function's own first call.
#include <chrono>
#include <thread>

#include "facade_fixture.hpp"

namespace warmgraph::test::statistics_test {
namespace {

using SteadyClock = std::chrono::steady_clock;

class StatisticsTest : public FacadeTest {
protected:
    [[nodiscard]] Function add_one(Cache& cache) const
    {
        Spec spec = x_to_y(f32, k_count, {program});
        spec.version = "1";
        return cache.wrap("f", device, spec, [this](Recorder& r) {
            r.stream().launch(program, "add_one", {.grid = {k_count / 16}, .block = {16}}, r["x"], r["y"]);
        });
    }
};

TEST_F(StatisticsTest, WhatIsSavedIsWhatTheAnswerTookHoweverLateItIsRecorded)
{
    const Buffer x = floats(5, k_count), y = device.allocate(k_count * 4);
    double took_ms = 0;
    {
        CacheOptions later = options();
        later.record = RecordWhen::on_demand;
        Cache cache{later};
        Function f = add_one(cache);
        const auto begun = SteadyClock::now();
        ASSERT_EQ(f({{"x", x}, {"y", y}}), Outcome::eager);
        device.synchronize();
        took_ms = std::chrono::duration<double, std::milli>(SteadyClock::now() - begun).count();
        std::this_thread::sleep_for(std::chrono::duration<double, std::milli>(2000 + took_ms));
        ASSERT_EQ(cache.record_pending(), 1U) << f.report().reason;
    }
    Cache cache{options()};
    Function f = add_one(cache);
    ASSERT_EQ(f({{"x", x}, {"y", y}}), Outcome::replayed);
    const Statistics now = cache.statistics();
    EXPECT_LE(now.of(ArtifactKind::entries).saved_ms + now.of(ArtifactKind::entries).load_ms, took_ms);
    EXPECT_GE(now.of(ArtifactKind::entries).saved_ms + now.of(ArtifactKind::entries).load_ms, took_ms / 2)
        << "of " << took_ms << " ms";
}

} // namespace
} // namespace warmgraph::test::statistics_test
