// warmgraph_llm: continues a story. The second start of it replays what the first one recorded.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "generate.hpp"
#include "model.hpp"
#include "result.hpp"
#include "safetensors.hpp"
#include "table.hpp"
#include "tokenizer.hpp"
#include <warmgraph/warmgraph.hpp>

namespace {

namespace fs = std::filesystem;
namespace wg = warmgraph;
using Clock = std::chrono::steady_clock;

constexpr int k_failed = 1;
constexpr int k_usage = 2;
constexpr int k_missed = 3; // policy require_hit
constexpr int k_steady_prompts = 5;

const std::map<std::string, wg::Policy> k_policies{{"read_write", wg::Policy::read_write},
                                                   {"read_only", wg::Policy::read_only},
                                                   {"refresh", wg::Policy::refresh},
                                                   {"off", wg::Policy::off},
                                                   {"require_hit", wg::Policy::require_hit}};

const std::map<std::string, std::optional<wg::TuningSearch>> k_tunings{
    {"off", std::nullopt},
    {"enumerate", wg::TuningSearch::enumerate},
    {"descent", wg::TuningSearch::coordinate_descent}};

struct Options {
    std::string prompt = "Once upon a time";
    std::uint32_t tokens = 224;
    std::string cache_dir;
    std::string policy;
    std::string tune = "off";
    std::string backend = "opencl";
    std::string device;
    std::string weights;
    std::string json;

    /// "opencl", "cuda:0": what wg::Device takes. A device that names its backend needs no --backend.
    [[nodiscard]] std::string device_id() const
    {
        if (device.empty()) return backend;
        const std::string kind = device.substr(0, device.find(':'));
        return kind == "opencl" || kind == "cuda" ? device : backend + ":" + device;
    }
};

double milliseconds_between(Clock::time_point begin, Clock::time_point end)
{
    return std::chrono::duration<double, std::milli>(end - begin).count();
}

/// Beside this program, or where an installation puts them: both move together with it.
fs::path find_weights(const std::string& given)
{
    if (!given.empty()) return given;
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    const fs::path installed = folder.parent_path() / LLM_INSTALLED_WEIGHTS;
    return fs::exists(installed, ignored) ? installed : folder / fs::path(LLM_INSTALLED_WEIGHTS).filename();
}

wg::CacheOptions cache_options_of(const Options& options, const llm::Model& model)
{
    wg::CacheOptions cache_options;
    cache_options.model = model.config().name;
    cache_options.config = model.config().identity();
    cache_options.cache_dir = options.cache_dir;
    if (!options.policy.empty()) cache_options.policy = k_policies.at(options.policy);
    cache_options.record = wg::RecordWhen::on_demand; // the story first
    return cache_options;
}

/// Geometries are validated where kernels are compiled: a start that replays compiles none.
std::optional<wg::Tuner> make_tuner(const Options& options, const wg::Device& device, wg::Cache& cache)
{
    const auto search = k_tunings.at(options.tune);
    if (!search) return std::nullopt;
    return cache.tuner(device, {.search = *search, .validation = wg::TuningValidation::at_first_run});
}

/// Tells the story. `ready`: when the device was open and the weights were there.
llm::Result tell(const Options& options, const wg::Device& device, const llm::Model& model, wg::Cache& cache,
                 Clock::time_point ready)
{
    llm::Session session{device, model, cache};

    const std::vector<std::int32_t> prompt = llm::encode(options.prompt);
    std::vector<float> logits = session.prompt(prompt);
    const auto first = Clock::now();

    llm::Result result;
    result.tokens = llm::generate(session, std::move(logits), prompt.size(), options.tokens, llm::k_end_of_story);
    result.text = options.prompt + llm::decode(result.tokens);
    const auto told = Clock::now();
    cache.record_pending();
    result.recording_ms = milliseconds_between(told, Clock::now());
    for (int i = 0; i < k_steady_prompts; ++i) static_cast<void>(session.prompt(prompt)); // only timed
    result.first_token_ms = milliseconds_between(ready, first);
    result.functions.push_back({session.prompt_report(), session.prompt_times()});
    if (session.decode_times().calls() > 0)
        result.functions.push_back({session.decode_report(), session.decode_times()});
    result.statistics = cache.statistics();
    result.summary = cache.summary();
    return result;
}

llm::Result run(const Options& options)
{
    const auto start = Clock::now();
    const wg::Device device{options.device_id()};
    const auto opened = Clock::now();
    llm::Model model{device, samples::Safetensors::read(find_weights(options.weights))};
    const auto ready = Clock::now();
    wg::Cache cache{cache_options_of(options, model)};
    std::optional<wg::Tuner> tuner = make_tuner(options, device, cache);
    const auto told = [&] {
        const auto begin = Clock::now();
        auto reports = tuner ? model.tune(*tuner) : std::vector<wg::TuningReport>{};
        const double took = milliseconds_between(begin, Clock::now());
        llm::Result result = tell(options, device, model, cache, ready);
        result.tuning = std::move(reports);
        result.tuning_ms = took;
        return result;
    };
    llm::Result result = [&] {
        try {
            return told();
        } catch (const wg::Exception& error) {
            if (!tuner || error.code() != wg::ErrorCode::verification_failed) throw;
            fmt::print(stderr, "warmgraph_llm: {}\n", error.what());
            return told(); // the tuner gives the default now
        }
    }();
    result.context_ms = milliseconds_between(start, opened);
    result.weights_ms = milliseconds_between(opened, ready);
    result.first_token_with_context_ms = milliseconds_between(start, ready) + result.first_token_ms;
    return result;
}

void print_for_people(const llm::Result& result)
{
    fmt::print("{}\n\n{}\n", result.text, llm::to_table(result).text(llm::colour_of_stdout()));
    for (const llm::FunctionResult& function : result.functions) {
        if (!function.report.reason.empty()) fmt::print("{}: {}\n", function.report.function, function.report.reason);
    }
    for (const wg::TuningReport& report : result.tuning) fmt::print("{}\n", llm::to_text(report));
    fmt::print("{}\n", result.summary);
}

void write_json(const llm::Result& result, const std::string& path)
{
    // The model may be made to emit half a character: such bytes are replaced, not refused.
    const std::string text = llm::to_json(result).dump(2, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
    if (path == "-") {
        fmt::print("{}", text);
        return;
    }
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error(fmt::format("cannot write '{}'", path));
}

template <class Map>
std::vector<std::string> names_of(const Map& map)
{
    std::vector<std::string> names;
    for (const auto& item : map) names.push_back(item.first);
    return names;
}

void declare(CLI::App& app, Options& options)
{
    app.add_option("--prompt", options.prompt, "how the story begins, at most 128 bytes")->capture_default_str();
    app.add_option("--tokens", options.tokens, "how many tokens at most")
        ->capture_default_str()
        ->check(CLI::Range(1, 255));
    app.add_option("--cache-dir", options.cache_dir, "default: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache");
    app.add_option("--policy", options.policy, "default: $WARMGRAPH_POLICY, else read_write")
        ->check(CLI::IsMember(names_of(k_policies)));
    app.add_option(
           "--tune", options.tune,
           "time the kernels' geometries and keep the best: all candidates, or coordinate descent from the best "
           "of them; a later start reads what was found")
        ->capture_default_str()
        ->check(CLI::IsMember(names_of(k_tunings)));
    app.add_option("--backend", options.backend, "kind of device: opencl or cuda")->capture_default_str();
    app.add_option("--device", options.device, "index or part of the name, or cuda:0; default: the backend's first");
    app.add_option("--weights", options.weights, "a safetensors file; default: the one that comes with the sample");
    app.add_option("--json", options.json,
                   "write the result to this file, '-': to standard output and nothing else there");
    app.footer("exit codes: 0 done, 1 failed, 2 wrong usage, 3 policy require_hit and no entry");
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Continues a story with a small language model whose two functions are recorded once and replayed by every "
        "later process."};
    Options options;
    declare(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : k_usage;
    }
    try {
        const llm::Result result = run(options);
        if (options.json != "-") print_for_people(result);
        if (!options.json.empty()) write_json(result, options.json);
        return 0;
    } catch (const wg::Exception& error) {
        fmt::print(stderr, "warmgraph_llm: {}\n", error.what());
        return error.code() == wg::ErrorCode::miss_forbidden ? k_missed : k_failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "warmgraph_llm: {}\n", error.what());
        return k_failed;
    }
}
