// New processes: the time from the file to the first result, for several lengths, library kernels and many graphs.
#include <filesystem>
#include <map>
#include <stdexcept>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "cuda_bench.hpp"
#include "once.hpp"
#include "processes.hpp"
#include "stored_bytes.hpp"
#include "temp_dir.hpp"
#include "timing.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_restores = 7;
/// The processes' times vary by up to half: cuBLASLt loads 100 MB of libraries.
constexpr int k_miss_repetitions = 16;

using Json = nlohmann::ordered_json;

/// Runs the child `name` once cold and then several times warm, with `state`'s number of nodes.
void restore(benchmark::State& state, const std::string& name, const std::filesystem::path& cache)
{
    const std::vector<std::string> arguments{"--cache-dir", cache, "--nodes", std::to_string(state.range(0))};
    const auto cold = child(name, arguments);
    if (cold.at("outcome") != "recorded")
        throw std::runtime_error("not recorded: " + cold.at("reason").get<std::string>());
    std::map<std::string, std::vector<double>> figures;
    for (int i = 0; i < k_restores; ++i) {
        const auto warm = child(name, arguments);
        if (warm.at("outcome") != "replayed" || warm.at("result") != cold.at("result"))
            throw std::runtime_error("not replayed: " + warm.at("reason").get<std::string>());
        figures["context_ms"].push_back(warm.at("context_ms"));
        figures["first_result_ms"].push_back(warm.at("first_result_ms"));
        // Counters come back sorted by name: the number keeps the phases' order.
        int number = 0;
        for (const auto& phase : warm.at("phases"))
            figures[fmt::format("phase{:02}{}", number++, phase.at(0).get<std::string>())].push_back(phase.at(1));
    }
    state.counters["cold_ms"] = cold.at("first_result_ms").get<double>();
    for (const auto& [figure, values] : figures) state.counters[figure] = median(values);
}

void cuda_restore(benchmark::State& state)
{
    once(state, "cuda_restore", [&] {
        const test::TempDir dir;
        restore(state, "chain", dir.path() / "cache");
    });
}

void cuda_products(benchmark::State& state)
{
    once(state, "cuda_products", [&] {
        const test::TempDir dir;
        const auto cache = dir.path() / "cache";
        restore(state, "products", cache);
        const StoredBytes bytes = stored_bytes(cache);
        state.counters["stored_bytes"] = static_cast<double>(bytes.stored);
        state.counters["kernel_bytes"] = static_cast<double>(bytes.kernels);
    });
}

/// Runs one process with `--do what` and a new cache.
Json miss(std::int64_t nodes, const std::string& what)
{
    const test::TempDir dir;
    return child("miss", {"--cache-dir", dir.path() / "cache", "--nodes", std::to_string(nodes), "--do", what});
}

/// Runs the two ways alternately, so that other load affects both; the first way changes each time.
void cuda_miss(benchmark::State& state)
{
    once(state, "cuda_miss", [&] {
        std::map<std::string, std::vector<double>> figures;
        for (int i = 0; i < k_miss_repetitions; ++i) {
            Json without, with;
            if (i % 2 == 0) without = miss(state.range(0), "off");
            with = miss(state.range(0), "record");
            if (i % 2 == 1) without = miss(state.range(0), "off");
            if (with.at("result") != without.at("result")) throw std::runtime_error("another result with the cache");
            figures["without_ms"].push_back(without.at("first_result_ms"));
            figures["with_ms"].push_back(with.at("first_result_ms"));
            figures["record_ms"].push_back(with.at("record_ms"));
            int number = 0;
            for (const auto& phase : with.at("phases"))
                figures[fmt::format("phase{:02}{}", number++, phase.at(0).get<std::string>())].push_back(phase.at(1));
        }
        for (const auto& [figure, values] : figures) state.counters[figure] = lower_quartile(values);
        state.counters["without_median_ms"] = median(figures.at("without_ms"));
        state.counters["with_median_ms"] = median(figures.at("with_ms"));
    });
}

void cuda_preload(benchmark::State& state)
{
    const auto count = state.range(0);
    once(state, "cuda_preload", [&] {
        const test::TempDir dir;
        std::vector<std::string> arguments{"--cache-dir", dir.path() / "cache",
                                           "--count",     std::to_string(count),
                                           "--nodes",     "1000",
                                           "--warm-up",   "no",
                                           "--do",        "record"};
        std::string& warm_up = arguments[arguments.size() - 3];
        if (const auto recorded = child("graphs", arguments); recorded.at("recorded") != count)
            throw std::runtime_error(
                fmt::format("{} graphs recorded, expected {}", recorded.at("recorded").dump(), count));
        std::vector<double> cold, first, all, uploaded, instantiated;
        for (int i = 0; i < k_restores; ++i) {
            arguments.back() = "instantiate";
            instantiated.push_back(child("graphs", arguments).at("instantiate_ms"));
            arguments.back() = "open";
            warm_up = "no";
            cold.push_back(child("graphs", arguments).at("first_ms"));
            warm_up = "yes";
            const auto opened = child("graphs", arguments);
            if (opened.at("opened") != count)
                throw std::runtime_error(
                    fmt::format("{} graphs opened, expected {}", opened.at("opened").dump(), count));
            first.push_back(opened.at("first_ms"));
            all.push_back(opened.at("all_ms"));
            uploaded.push_back(opened.at("uploaded_ms"));
        }
        state.counters["first_cold_ms"] = median(cold);
        state.counters["first_ms"] = median(first);
        state.counters["all_ms"] = median(all);
        state.counters["uploaded_ms"] = median(uploaded);
        state.counters["instantiate_ms"] = median(instantiated);
    });
}

} // namespace

void register_cuda_restore()
{
    benchmark::RegisterBenchmark("cuda_restore", cuda_restore)->Arg(1)->Arg(100)->Arg(182)->Arg(1000)->Iterations(1);
    benchmark::RegisterBenchmark("cuda_products", cuda_products)->Arg(182)->Iterations(1);
    benchmark::RegisterBenchmark("cuda_miss", cuda_miss)->Arg(182)->Iterations(1);
    benchmark::RegisterBenchmark("cuda_preload", cuda_preload)->Arg(128)->Iterations(1);
}

} // namespace warmgraph::bench
