// A kernel that does WORK times as much as it needs to, so that which configuration is the fastest is known.
#pragma once

#include <memory>

#include "facade_fixture.hpp"

namespace warmgraph::test {

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
    /// What a process that starts now is told.
    [[nodiscard]] TuningReport tune(const TuningOptions& how = {}, Policy policy = Policy::read_write)
    {
        Cache cache{options(policy)};
        return cache.tuner(device, how).tune(kernel()).report();
    }

    static constexpr std::int64_t k_items = 4096;
    /// No compiler can tell that the loop never ends at 0.123.
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
    int m_works = 0;           ///< how often memory was made
    std::int64_t m_spoils = 0; ///< the configuration that gives other results

private:
    [[nodiscard]] TuningWork make_work()
    {
        ++m_works;
        auto x = std::make_shared<Buffer>(floats(1, k_items));
        auto y = std::make_shared<Buffer>(floats(0, k_items));
        const Launch geometry{.grid = {k_items / 16, 1, 1}, .block = {16, 1, 1}};
        const auto launch = [this, x, y, geometry](Stream& stream, const Program& heavy, const TunedConfig& config) {
            if (config.at("WORK") == 2) throw std::runtime_error("no launch of 2");
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
