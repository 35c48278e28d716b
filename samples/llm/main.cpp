// warmgraph_llm: continues a story. The second start replays the first start's recordings.
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "generate.hpp"
#include "model.hpp"
#include "program.hpp"
#include "result.hpp"
#include "safetensors.hpp"
#include "table.hpp"
#include "tokenizer.hpp"
#include <warmgraph/warmgraph.hpp>

namespace {

namespace wg = warmgraph;
using Clock = std::chrono::steady_clock;

constexpr int k_steady_prompts = 5;

const std::map<std::string, std::optional<wg::TuningSearch>> k_tunings{
    {"off", std::nullopt},
    {"enumerate", wg::TuningSearch::enumerate},
    {"descent", wg::TuningSearch::coordinate_descent}};

struct Options : llm::ProgramOptions {
    std::string prompt = "Once upon a time";
    std::uint32_t tokens = 224;
    std::string tune = "off";
    std::string backend = "opencl";
    std::string device;

    /// The argument of wg::Device, e.g. "opencl" or "cuda:0". A device that names its backend needs no --backend.
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

/// Makes the tuner. Stored geometries are validated only when kernels are compiled: a start that replays compiles no
/// kernels.
std::optional<wg::Tuner> make_tuner(const Options& options, const wg::Device& device, wg::Cache& cache)
{
    const auto search = k_tunings.at(options.tune);
    if (!search) return std::nullopt;
    return cache.tuner(device, {.search = *search, .validation = wg::TuningValidation::at_first_run});
}

/// Generates the story. `ready`: the time when the device was open and the weights were uploaded.
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
    for (int i = 0; i < k_steady_prompts; ++i) static_cast<void>(session.prompt(prompt)); // these calls are only timed
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
    llm::Model model{device, samples::Safetensors::read(llm::weights_of(options))};
    const auto ready = Clock::now();
    wg::CacheOptions cache_options = llm::cache_options(options, model.config());
    cache_options.record = wg::RecordWhen::on_demand; // generate the story first
    wg::Cache cache{cache_options};
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
            return told(); // the tuner returns the default now
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

void declare(CLI::App& app, Options& options)
{
    app.add_option("--prompt", options.prompt, "how the story begins, at most 128 bytes")->capture_default_str();
    app.add_option("--tokens", options.tokens, "how many tokens at most")
        ->capture_default_str()
        ->check(CLI::Range(1, 255));
    app.add_option(
           "--tune", options.tune,
           "time the kernels' geometries and keep the best: all candidates, or coordinate descent from the best "
           "of them; a later start reads what was found")
        ->capture_default_str()
        ->check(CLI::IsMember({"off", "enumerate", "descent"}));
    app.add_option("--backend", options.backend, "kind of device: opencl or cuda")->capture_default_str();
    app.add_option("--device", options.device, "index or part of the name, or cuda:0; default: the backend's first");
    llm::declare(app, options);
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Continues a story with a small language model whose two functions are recorded once and replayed by every "
        "later process."};
    Options options;
    declare(app, options);
    return llm::run_program(app, "warmgraph_llm", argc, argv, [&options] {
        const llm::Result result = run(options);
        if (options.is_for_people()) print_for_people(result);
        llm::write_json(llm::to_json(result), options);
    });
}
