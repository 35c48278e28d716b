// warmgraph_train: trains a small network by SGD with momentum. Forward and backward are recorded together; the second
// start replays every step and gives bit-equal losses.
#include <cstdio>
#include <exception>
#include <string>

#include <CLI/CLI.hpp>

#include "trainer.hpp"

namespace {

namespace wg = warmgraph;

constexpr std::int32_t k_rows = 96;
constexpr float k_most_gradient_error = 1e-2F; ///< limit for finite differences in single precision

std::string text(wg::Outcome outcome) { return std::string(wg::to_string(outcome)); }

int train_steps(train::Trainer& trainer, int steps, float rate)
{
    train::Step first;
    for (int i = 0; i < steps; ++i) {
        // Nine significant digits distinguish any two floats.
        const train::Step step = trainer.step(train::spiral(k_rows, static_cast<std::uint32_t>(i)), rate);
        std::printf("step %d: loss %.9g\n", i, static_cast<double>(step.loss));
        if (i == 0) first = step;
    }
    std::printf("first step: forward %s, backward %s, update %s\n", text(first.forward).c_str(),
                text(first.backward).c_str(), text(first.update).c_str());
    return 0;
}

int check_gradients(train::Trainer& trainer)
{
    const float error = trainer.gradient_error(train::spiral(k_rows, 1000));
    std::printf("gradients: off by %.2g of the largest from finite differences\n", static_cast<double>(error));
    return error <= k_most_gradient_error ? 0 : 1;
}

} // namespace

int main(int argc, char** argv)
try {
    CLI::App app{"Trains a small network with a cached training step."};
    std::string backend = "opencl", cache_dir;
    int steps = 100;
    float rate = 0.2F;
    bool checks = false;
    app.add_option("--backend", backend, "opencl or cuda")->check(CLI::IsMember({"opencl", "cuda"}));
    app.add_option("--cache-dir", cache_dir, "else $WARMGRAPH_CACHE_DIR, else .warmgraph_cache");
    app.add_option("--steps", steps, "how many")->check(CLI::Range(1, 100'000));
    app.add_option("--rate", rate, "learning rate")->check(CLI::Range(0.0F, 10.0F));
    app.add_flag("--check-gradients", checks, "afterwards, against finite differences");
    CLI11_PARSE(app, argc, argv);

    wg::CacheOptions options;
    options.model = "spiral";
    options.cache_dir = cache_dir;
    wg::Cache cache{options};
    train::Trainer trainer{cache, backend, k_rows};
    int code = train_steps(trainer, steps, rate);
    if (checks) code = check_gradients(trainer);
    std::printf("%s\n", cache.summary().c_str());
    return code;
} catch (const std::exception& error) {
    std::fprintf(stderr, "warmgraph_train: %s\n", error.what());
    return 1;
}
