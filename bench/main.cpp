// warmgraph_bench [--backend opencl|cuda] [--json FILE] [Google Benchmark's own flags]: every figure is a median of
// repetitions, every claim a ratio within this run. No benchmark passes or fails: speed is measured, not tested.
#include <cstring>
#include <fstream>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <benchmark/benchmark.h>

#include "children.hpp"
#include "cuda_bench.hpp"
#include "first_call_bench.hpp"
#include "once.hpp"
#include "report.hpp"

namespace {

namespace bench = warmgraph::bench;

constexpr bool k_has_cuda = WARMGRAPH_BENCH_CUDA != 0; ///< this build has the backend

struct Options {
    std::string backend = "opencl";
    std::string json_file;
    std::vector<char*> rest; ///< for Google Benchmark
};

/// Returns nullopt after a message: wrong usage.
std::optional<Options> read(int argc, char** argv)
{
    Options options;
    for (int i = 0; i < argc; ++i) {
        const std::string_view word = argv[i];
        std::string* value = word == "--json" ? &options.json_file : word == "--backend" ? &options.backend : nullptr;
        if (value == nullptr) {
            options.rest.push_back(argv[i]);
        } else if (i + 1 == argc) {
            std::cerr << word << " needs a value\n";
            return std::nullopt;
        } else {
            *value = argv[++i];
        }
    }
    if (options.backend != "opencl" && (options.backend != "cuda" || !k_has_cuda)) {
        std::cerr << "--backend is '" << options.backend << "', expected opencl"
                  << (k_has_cuda ? " or cuda\n" : ": this build has no other\n");
        return std::nullopt;
    }
    return options;
}

/// Registers the benchmarks of one backend. The long benchmarks of the library alone run only with the default.
void choose(const std::string& backend)
{
    bench::register_first_call(backend);
    if (backend == "opencl") {
        std::cerr << "measuring: guards, look-up, codec, bundles, steady calls, then cold and warm first calls (about "
                     "two minutes)\n";
        return;
    }
    if constexpr (k_has_cuda) {
        bench::register_cuda_replay();
        bench::register_cuda_restore();
    }
    if (benchmark::GetBenchmarkFilter().empty()) benchmark::SetBenchmarkFilter("^(call_guard|cuda_|first_call)");
    std::cerr << "measuring: guards, cold and warm first calls, replay and calls against the bare driver, then fresh "
                 "processes (some minutes)\n";
}

} // namespace

int main(int argc, char** argv)
{
    if constexpr (k_has_cuda)
        if (argc > 1 && std::strcmp(argv[1], "--child") == 0)
            return bench::run_child(std::span<char* const>{argv, static_cast<std::size_t>(argc)}.subspan(2));
    std::optional<Options> options = read(argc, argv);
    if (!options) return 2;
    int count = static_cast<int>(options->rest.size());
    benchmark::Initialize(&count, options->rest.data());
    if (benchmark::ReportUnrecognizedArguments(count, options->rest.data())) return 2;

    choose(options->backend);
    bench::Collector collector;
    benchmark::RunSpecifiedBenchmarks(&collector);
    const auto lines = bench::lines(collector);
    std::cout << bench::table(lines);
    if (!options->json_file.empty()) {
        std::ofstream file{options->json_file};
        file << bench::json(lines) << "\n";
        if (!file.flush()) {
            std::cerr << "cannot write " << options->json_file << "\n";
            return 1;
        }
        std::cerr << "written to " << options->json_file << "\n";
    }
    return bench::failures() == 0 ? 0 : 1;
}
