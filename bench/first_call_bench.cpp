// The main job, cold and warm: samples/llm in its own processes. On CUDA, making the context is the lower limit.
#include "first_call_bench.hpp"

#include <map>
#include <vector>

#include <benchmark/benchmark.h>

#include "once.hpp"
#include "processes.hpp"
#include "stored_bytes.hpp"
#include "temp_dir.hpp"
#include "timing.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_repetitions = 3;

using Figures = std::map<std::string, std::vector<double>>;

/// Measures one start: the first calls of prompt and decode, and the whole process's times.
void start(const std::string& backend, const std::filesystem::path& cache, const std::string& name, Figures& figures)
{
    const auto run =
        result_of(program_of(WARMGRAPH_LLM_BINARY), {"--backend", backend, "--cache-dir", cache.string(), "--policy",
                                                     "read_write", "--prompt", "Once upon a time", "--tokens", "8"});
    double sum = 0;
    for (const auto& function : run.at("functions")) {
        if (name == "warm" && function.at("outcome") != "replayed")
            throw std::runtime_error("the warm run replayed nothing: " + function.at("reason").get<std::string>());
        sum += function.at("first_call_ms").get<double>();
    }
    figures[name + "_ms"].push_back(sum);
    figures[name + "_token_ms"].push_back(run.at("time_to_first_token_with_context_ms"));
    figures["context_ms"].push_back(run.at("phases").at("context"));
}

void first_call(benchmark::State& state, const std::string& backend)
{
    once(state, "first_call", [&] {
        Figures figures;
        for (int i = 0; i < k_repetitions; ++i) {
            const test::TempDir dir;
            start(backend, dir.path() / "cache", "cold", figures);
            start(backend, dir.path() / "cache", "warm", figures);
            if (backend != "cuda") continue;
            const StoredBytes bytes = stored_bytes(dir.path() / "cache");
            figures["stored_bytes"].push_back(static_cast<double>(bytes.stored));
            figures["kernel_bytes"].push_back(static_cast<double>(bytes.kernels));
        }
        for (const auto& [name, values] : figures) state.counters[name] = median(values);
    });
}

} // namespace

void register_first_call(const std::string& backend)
{
    benchmark::RegisterBenchmark("first_call", first_call, backend)->Iterations(1);
}

} // namespace warmgraph::bench
