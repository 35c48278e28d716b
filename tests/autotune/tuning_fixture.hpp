// A fixture with a kernel that does its work WORK times, and a clock that only counts this work. So the tests know
// which configuration is the fastest, even on a busy machine.
#pragma once

#include <atomic>
#include <memory>

#include "cache/cache_impl.hpp"
#include "facade_fixture.hpp"
#include "warmgraph/autotune/tuner_impl.hpp"

namespace warmgraph::test {

/// A clock on which time passes only in advance().
class SteppedClock final : public Clock {
public:
    std::chrono::steady_clock::time_point steady() const noexcept override
    {
        return std::chrono::steady_clock::time_point{} + std::chrono::microseconds{m_us.load()};
    }
    std::chrono::system_clock::time_point wall() const noexcept override { return system_clock().wall(); }
    void sleep_for(std::chrono::nanoseconds) override {}
    void advance(std::int64_t us) noexcept { m_us += us; }

private:
    std::atomic<std::int64_t> m_us = 0;
};

class TuningTest : public FacadeTest {
protected:
    TuningTest()
    {
        m_kernel.name = "heavy";
        m_kernel.source = k_source;
        m_kernel.problem = {{"count", k_items}};
        m_kernel.candidates = {{{"WORK", 64}}, {{"WORK", 1}}, {{"WORK", 8}}};
    }

    [[nodiscard]] TunableKernel kernel()
    {
        TunableKernel kernel = m_kernel;
        kernel.work = [this] { return make_work(); };
        return kernel;
    }
    [[nodiscard]] Tuner tuner_of(const Cache& cache, const TuningOptions& how = {})
    {
        return TunerAccess::make(CacheAccess::impl(cache)->tuner_sources(CacheAccess::impl(cache)), device, how,
                                 m_clock);
    }
    /// Tunes in a new process, and returns the report.
    [[nodiscard]] TuningReport tune(const TuningOptions& how = {}, Policy policy = Policy::read_write)
    {
        Cache cache{options(policy)};
        return tuner_of(cache, how).tune(kernel()).report();
    }

    static constexpr std::int64_t k_items = 512, k_us_of_work = 100;
    /// The compiler must not remove the loop. It cannot know that the loop never ends early (at 0.123).
    static constexpr const char* k_source = R"(
__kernel __attribute__((reqd_work_group_size(16, 1, 1))) void heavy(__global const float* x, __global float* y, int repeat)
{
    const size_t i = get_global_id(0);
    float value = x[i];
    for (int n = 0; n < repeat * WORK; ++n)
        value = sqrt(value * value + 1.0f);
    y[i] = value == 0.123f ? 0 : x[i];
})";

    TunableKernel m_kernel;
    SteppedClock m_clock;
    int m_works = 0;           ///< how often the kernel's memory was made
    std::int64_t m_spoils = 0; ///< the value of WORK for which the results are wrong

private:
    [[nodiscard]] TuningWork make_work()
    {
        ++m_works;
        auto x = std::make_shared<Buffer>(floats(1, k_items));
        auto y = std::make_shared<Buffer>(floats(0, k_items));
        const Launch geometry{.grid = {k_items / 16, 1, 1}, .block = {16, 1, 1}};
        const auto launch = [this, x, y, geometry](Stream& stream, const Program& heavy, const TunedConfig& config) {
            if (config.at("WORK") == 2) throw std::runtime_error("no launch of 2");
            m_clock.advance(k_us_of_work * config.at("WORK"));
            if (m_kernel.source.find("int repeat") != std::string::npos)
                stream.launch(heavy, "heavy", geometry, *x, *y, 4);
            else
                stream.launch(heavy, "heavy", geometry, *x, *y);
            if (config.at("WORK") == m_spoils) stream.zero(y->memory().address, 64);
        };
        return {launch, {{*y, f32}}};
    }
};

} // namespace warmgraph::test
