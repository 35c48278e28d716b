// warmgraph_llm_lengths: serves prompts of 40 lengths. The first start profiles them and records at most six buckets, which
// were learnt from what was called; later starts replay those and record nothing.
#include <algorithm>
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
#include <nlohmann/json.hpp>

#include "generate.hpp"
#include "model.hpp"
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

constexpr std::uint32_t k_lengths = 40; ///< different ones
constexpr std::uint32_t k_most_buckets = 6;
constexpr std::int64_t k_multiple = 8; ///< rows that the kernels work on at a time, whatever their geometry

const std::map<std::string, wg::Policy> k_policies{{"read_write", wg::Policy::read_write},
                                                   {"read_only", wg::Policy::read_only},
                                                   {"require_hit", wg::Policy::require_hit}};

struct Options {
    std::string cache_dir;
    std::string policy;
    std::string backend = "opencl";
    std::string weights;
    std::string json;
};

/// Beside this program, or where an installation puts them.
fs::path find_weights(const std::string& given)
{
    if (!given.empty()) return given;
    std::error_code ignored;
    const fs::path folder = fs::read_symlink("/proc/self/exe", ignored).parent_path();
    const fs::path installed = folder.parent_path() / LLM_INSTALLED_WEIGHTS;
    return fs::exists(installed, ignored) ? installed : folder / fs::path(LLM_INSTALLED_WEIGHTS).filename();
}

/// 40 lengths of 5 to 128 tokens, shorter ones closer together, in an order that mixes them.
std::vector<std::uint32_t> lengths()
{
    std::vector<std::uint32_t> result;
    for (std::uint32_t i = 0; i < k_lengths; ++i) {
        const std::uint32_t at = i * 7 % k_lengths; // 7 and 40 have no common factor: each once
        result.push_back(5 + at + at * at * 84 / 1521);
    }
    return result;
}

/// Text of so many bytes.
std::vector<std::int32_t> prompt_of(std::uint32_t length)
{
    const std::string story = "Once upon a time there was a little fox who lived near a wide river with her brothers. ";
    std::string text;
    while (text.size() < length) text += story;
    text.resize(length);
    return llm::encode(text);
}

struct Call {
    std::uint32_t length = 0;
    std::int64_t ran = 0; ///< tokens that the function saw
    wg::Outcome outcome = wg::Outcome::eager;
    double ms = 0;
    std::int32_t next = 0; ///< the likeliest token
    [[nodiscard]] double padding() const noexcept
    {
        return ran > 0 ? 1.0 - static_cast<double>(length) / static_cast<double>(ran) : 0;
    }
};

struct Served {
    std::vector<Call> calls;
    wg::ProfileRecording recording;
    double recording_ms = 0;
    std::vector<std::int64_t> buckets;
    wg::Statistics statistics;
    std::string summary;
    [[nodiscard]] double padding() const noexcept
    {
        double asked = 0, ran = 0;
        for (const Call& call : calls) {
            asked += call.length;
            ran += static_cast<double>(call.ran);
        }
        return ran > 0 ? 1 - asked / ran : 0;
    }
};

/// The function `prompt` of the model, with lengths as they come: the library pads them.
class Service {
public:
    Service(const wg::Device& device, const llm::Model& model, wg::Cache& cache)
        : m_device(device),
          m_logits(device.allocate(model.config().vocab_size * sizeof(float))),
          m_prompt(cache.wrap("prompt_of_any_length", device, spec_of(model),
                              [&model](wg::Recorder& recorder) { model.prompt(recorder); }))
    {
    }

    [[nodiscard]] Call serve(std::uint32_t length)
    {
        const auto begin = Clock::now();
        const wg::Buffer tokens = m_device.upload<std::int32_t>(prompt_of(length));
        Call call{length};
        call.outcome = m_prompt({{"tokens", wg::Tensor{tokens, wg::i32, {length}, {}}},
                                 {"logits", m_logits},
                                 {"length", static_cast<std::int32_t>(length)}});
        m_device.synchronize();
        call.next = llm::argmax(m_logits.read<float>());
        call.ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
        return call;
    }

    /// Tokens that nobody asked about, as many as the profile says.
    [[nodiscard]] std::vector<wg::Arg> make_arguments(const wg::ProfiledShape& shape)
    {
        const std::int64_t count = shape.sizes.at("tokens").at(0);
        m_made = m_device.upload<std::int32_t>(prompt_of(static_cast<std::uint32_t>(count)));
        return {{"tokens", wg::Tensor{*m_made, wg::i32, {count}, {}}},
                {"logits", m_logits},
                {"length", static_cast<std::int32_t>(count)}};
    }

    /// With what each length ran.
    [[nodiscard]] std::map<std::int64_t, std::int64_t> ran() const
    {
        std::map<std::int64_t, std::int64_t> result;
        for (const wg::ProfiledShape& shape : m_prompt.shapes())
            if (const auto tokens = shape.ran.find("tokens"); tokens != shape.ran.end())
                result[shape.sizes.at("tokens").at(0)] = tokens->second.at(0);
        return result;
    }

    [[nodiscard]] wg::Function& function() noexcept { return m_prompt; }

private:
    static wg::Spec spec_of(const llm::Model& model)
    {
        wg::Spec spec = model.prompt_spec();
        wg::Buckets buckets;
        buckets.dimensions = {{"tokens", 0, 0}};
        buckets.rule = wg::BucketRule::learnt;
        buckets.most = k_most_buckets;
        buckets.multiple_of = k_multiple;
        spec.buckets = {buckets};
        return spec;
    }

    wg::Device m_device;
    wg::Buffer m_logits;
    wg::Function m_prompt;
    std::optional<wg::Buffer> m_made;
};

Served serve(const Options& options)
{
    const wg::Device device{options.backend};
    const llm::Model model{device, samples::Safetensors::read(find_weights(options.weights))};
    wg::CacheOptions cache_options;
    cache_options.model = model.config().name;
    cache_options.config = model.config().identity();
    cache_options.cache_dir = options.cache_dir;
    if (!options.policy.empty()) cache_options.policy = k_policies.at(options.policy);
    wg::Cache cache{cache_options};
    Service service{device, model, cache};

    Served served;
    for (const std::uint32_t length : lengths()) served.calls.push_back(service.serve(length));
    const auto begin = Clock::now();
    served.recording = cache.record_profile(
        service.function(), [&](const wg::ProfiledShape& shape) { return service.make_arguments(shape); });
    served.recording_ms = std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
    const auto ran = service.ran();
    for (Call& call : served.calls)
        if (const auto known = ran.find(call.length); known != ran.end()) call.ran = known->second;
    served.buckets = service.function().buckets().at(0);
    served.statistics = cache.statistics();
    served.summary = cache.summary();
    return served;
}

void print_for_people(const Served& served)
{
    llm::Table table;
    table.row({"tokens", "ran with", "padding", "outcome", "took"});
    table.rule();
    std::vector<Call> sorted = served.calls;
    std::sort(sorted.begin(), sorted.end(), [](const Call& a, const Call& b) { return a.length < b.length; });
    for (const Call& call : sorted)
        table.row({std::to_string(call.length), std::to_string(call.ran), fmt::format("{:.0f} %", 100 * call.padding()),
                   std::string(wg::to_string(call.outcome)), llm::milliseconds(call.ms)});
    table.rule();
    table.strong_row({"all", "", fmt::format("{:.0f} %", 100 * served.padding()), "", ""});
    fmt::print("{}\nbuckets: {}\n{} recorded ahead in {}, {} were there\n{}\n", table.text(llm::colour_of_stdout()),
               fmt::join(served.buckets, ", "), served.recording.recorded, llm::milliseconds(served.recording_ms),
               served.recording.replayed, served.summary);
    for (const std::string& problem : served.recording.problems) fmt::print("not recorded: {}\n", problem);
    if (!served.recording.why_not.empty()) fmt::print("nothing is recorded ahead: {}\n", served.recording.why_not);
}

void write_json(const Served& served, const std::string& path)
{
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const Call& call : served.calls)
        calls.push_back({{"tokens", call.length},
                         {"ran", call.ran},
                         {"padding", call.padding()},
                         {"outcome", wg::to_string(call.outcome)},
                         {"ms", call.ms},
                         {"next", call.next}});
    const nlohmann::ordered_json json{{"calls", calls},
                                      {"padding", served.padding()},
                                      {"buckets", served.buckets},
                                      {"recorded_ahead", served.recording.recorded},
                                      {"replayed_ahead", served.recording.replayed},
                                      {"problems", served.recording.problems},
                                      {"why_not", served.recording.why_not},
                                      {"recordings", served.statistics.recordings},
                                      {"hits", served.statistics.hits},
                                      {"misses", served.statistics.misses}};
    const std::string text = json.dump(2) + "\n";
    if (path == "-") {
        fmt::print("{}", text);
        return;
    }
    std::ofstream file(path, std::ios::binary);
    file << text;
    if (!file.flush()) throw std::runtime_error(fmt::format("cannot write '{}'", path));
}

void declare(CLI::App& app, Options& options)
{
    app.add_option("--cache-dir", options.cache_dir, "default: $WARMGRAPH_CACHE_DIR, else .warmgraph_cache");
    app.add_option("--policy", options.policy, "default: $WARMGRAPH_POLICY, else read_write")
        ->check(CLI::IsMember({"read_write", "read_only", "require_hit"}));
    app.add_option("--backend", options.backend, "the device: opencl, cuda, or cuda:0")->capture_default_str();
    app.add_option("--weights", options.weights, "a safetensors file; default: the one that comes with the sample");
    app.add_option("--json", options.json,
                   "write the result to this file, '-': to standard output and nothing else there");
    app.footer("exit codes: 0 done, 1 failed, 2 wrong usage, 3 policy require_hit and no entry");
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Serves prompts of 40 lengths with at most six recorded graphs: lengths are padded to buckets that were "
        "learnt from what earlier starts were asked."};
    Options options;
    declare(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : k_usage;
    }
    try {
        const Served served = serve(options);
        if (options.json != "-") print_for_people(served);
        if (!options.json.empty()) write_json(served, options.json);
        return 0;
    } catch (const wg::Exception& error) {
        fmt::print(stderr, "warmgraph_llm_lengths: {}\n", error.what());
        return error.code() == wg::ErrorCode::miss_forbidden ? k_missed : k_failed;
    } catch (const std::exception& error) {
        fmt::print(stderr, "warmgraph_llm_lengths: {}\n", error.what());
        return k_failed;
    }
}
