// warmgraph_llm_lengths: serves prompts of 40 lengths. The first start profiles them, learns at most six buckets and
// records these; later starts replay them and record nothing.
#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "generate.hpp"
#include "model.hpp"
#include "program.hpp"
#include "safetensors.hpp"
#include "table.hpp"
#include "tokenizer.hpp"
#include <warmgraph/warmgraph.hpp>

namespace {

namespace wg = warmgraph;
using Clock = std::chrono::steady_clock;

constexpr std::uint32_t k_lengths = 40; ///< number of different lengths
constexpr std::uint32_t k_most_buckets = 6;
constexpr std::int64_t k_multiple = 8; ///< the kernels work on this many rows at a time, with any geometry

struct Options : llm::ProgramOptions {
    std::string backend = "opencl";
};

/// Returns 40 lengths of 5 to 128 tokens, mixed; short lengths are closer together.
std::vector<std::uint32_t> lengths()
{
    std::vector<std::uint32_t> result;
    for (std::uint32_t i = 0; i < k_lengths; ++i) {
        const std::uint32_t at = i * 7 % k_lengths; // 7 and 40 have no common factor, so each value occurs once
        result.push_back(5 + at + at * at * 84 / 1521);
    }
    return result;
}

/// A text of this many bytes.
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
    std::int32_t next = 0; ///< the most likely token
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

/// The function `prompt` of the model, called with any length: the library pads the tokens.
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

    /// Makes arguments of a profiled length; the tokens are arbitrary.
    [[nodiscard]] std::vector<wg::Arg> make_arguments(const wg::ProfiledShape& shape)
    {
        const std::int64_t count = shape.sizes.at("tokens").at(0);
        m_made = m_device.upload<std::int32_t>(prompt_of(static_cast<std::uint32_t>(count)));
        return {{"tokens", wg::Tensor{*m_made, wg::i32, {count}, {}}},
                {"logits", m_logits},
                {"length", static_cast<std::int32_t>(count)}};
    }

    /// The padded length of each length.
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
    const llm::Model model{device, samples::Safetensors::read(llm::weights_of(options))};
    wg::Cache cache{llm::cache_options(options, model.config())};
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

nlohmann::ordered_json to_json(const Served& served)
{
    const wg::KindStatistics entries = served.statistics.of(wg::ArtifactKind::entries);
    nlohmann::ordered_json calls = nlohmann::ordered_json::array();
    for (const Call& call : served.calls)
        calls.push_back({{"tokens", call.length},
                         {"ran", call.ran},
                         {"padding", call.padding()},
                         {"outcome", wg::to_string(call.outcome)},
                         {"ms", call.ms},
                         {"next", call.next}});
    return {{"calls", calls},
            {"padding", served.padding()},
            {"buckets", served.buckets},
            {"recorded_ahead", served.recording.recorded},
            {"replayed_ahead", served.recording.replayed},
            {"problems", served.recording.problems},
            {"why_not", served.recording.why_not},
            {"recordings", entries.made},
            {"hits", entries.hits},
            {"misses", entries.misses}};
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Serves prompts of 40 lengths with at most six recorded graphs: each length is padded to a bucket, "
                 "and the buckets are learned from the lengths of earlier runs."};
    Options options;
    app.add_option("--backend", options.backend, "the device: opencl, cuda, or cuda:0")->capture_default_str();
    llm::declare(app, options);
    return llm::run_program(app, "warmgraph_llm_lengths", argc, argv, [&options] {
        const Served served = serve(options);
        if (options.is_for_people()) print_for_people(served);
        llm::write_json(to_json(served), options);
    });
}
