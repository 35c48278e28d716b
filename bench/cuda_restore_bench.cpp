// Fresh processes: from the file to the first result, for graphs of several lengths and for many graphs at once.
#include <map>
#include <stdexcept>
#include <vector>

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include "cuda_bench.hpp"
#include "once.hpp"
#include "processes.hpp"
#include "temp_dir.hpp"
#include "timing.hpp"

namespace warmgraph::bench {
namespace {

constexpr int k_repetitions = 7;

void cuda_restore(benchmark::State& state)
{
    once(state, "cuda_restore", [&] {
        const test::TempDir dir;
        const std::vector<std::string> arguments{"--cache-dir", dir.path() / "cache", "--nodes",
                                                 std::to_string(state.range(0))};
        const auto cold = child("chain", arguments);
        if (cold.at("outcome") != "recorded")
            throw std::runtime_error("not recorded: " + cold.at("reason").get<std::string>());
        std::map<std::string, std::vector<double>> figures;
        for (int i = 0; i < k_repetitions; ++i) {
            const auto warm = child("chain", arguments);
            if (warm.at("outcome") != "replayed" || warm.at("result") != cold.at("result"))
                throw std::runtime_error("not replayed: " + warm.at("reason").get<std::string>());
            figures["context_ms"].push_back(warm.at("context_ms"));
            figures["first_result_ms"].push_back(warm.at("first_result_ms"));
            // Counters come back by name: the number keeps the phases' order.
            int number = 0;
            for (const auto& phase : warm.at("phases"))
                figures[fmt::format("phase{:02}{}", number++, phase.at(0).get<std::string>())].push_back(phase.at(1));
        }
        state.counters["cold_ms"] = cold.at("first_result_ms").get<double>();
        for (const auto& [name, values] : figures) state.counters[name] = median(values);
    });
}

void cuda_open_all(benchmark::State& state)
{
    const auto count = state.range(0);
    once(state, "cuda_open_all", [&] {
        const test::TempDir dir;
        std::vector<std::string> arguments{
            "--cache-dir", dir.path() / "cache", "--count", std::to_string(count), "--nodes", "1000", "--do", "record"};
        if (const auto recorded = child("graphs", arguments); recorded.at("recorded") != count)
            throw std::runtime_error(
                fmt::format("{} graphs recorded, expected {}", recorded.at("recorded").dump(), count));
        arguments.back() = "open";
        std::vector<double> first, all;
        for (int i = 0; i < k_repetitions; ++i) {
            const auto opened = child("graphs", arguments);
            if (opened.at("opened") != count)
                throw std::runtime_error(
                    fmt::format("{} graphs opened, expected {}", opened.at("opened").dump(), count));
            first.push_back(opened.at("first_ms"));
            all.push_back(opened.at("all_ms"));
        }
        state.counters["first_ms"] = median(first);
        state.counters["all_ms"] = median(all);
    });
}

} // namespace

void register_cuda_restore()
{
    benchmark::RegisterBenchmark("cuda_restore", cuda_restore)->Arg(1)->Arg(100)->Arg(182)->Arg(1000)->Iterations(1);
    benchmark::RegisterBenchmark("cuda_open_all", cuda_open_all)->Arg(128)->Iterations(1);
}

} // namespace warmgraph::bench
