// warmgraph_layers: starts the sample's service with each single layer of its cache, with all layers, and with none.
// Measures the time to the first token for a recorded shape, and for a shape without a graph. Uses the folder in place,
// moved, and as a bundle.
//
// usage: warmgraph_layers [--backend opencl|cuda] [--from FOLDER] [--keep FOLDER] [--repetitions N] [--json FILE]
//   --from: use the cache that another run kept, maybe on another machine, instead of making one
//   --keep: leave the caches and their bundles there (cache, cache.wgb; with tuning: tuned, tuned.wgb)
#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "processes.hpp"
#include "spawn.hpp"
#include "table.hpp"
#include "temp_dir.hpp"

namespace {

namespace fs = std::filesystem;
namespace bench = warmgraph::bench;
using warmgraph::test::TempDir;

// Prompts of 16 and 60 bytes, for the buckets of 16 and 64 tokens. The cache is made with the first prompt.
constexpr const char* k_known = "Once upon a time";
constexpr const char* k_new = "Once upon a time there was a little fox who lived near water";

enum class Reached : std::uint8_t { in_place, moved, layer, loaded };

struct Row {
    const char* name;
    bool tunes = false;
    bool has_graphs = false, has_programs = false, has_tuned = false;
    Reached reached = Reached::in_place;
};

constexpr Row k_rows[] = {
    {"nothing"},
    {"graphs", false, true},
    {"programs", false, false, true},
    {"all", false, true, true, true},
    {"all, the folder moved", false, true, true, true, Reached::moved},
    {"all, read from a bundle", false, true, true, true, Reached::layer},
    {"all, loaded from a bundle", false, true, true, true, Reached::loaded},
    {"nothing", true},
    {"tuned", true, false, false, true},
    {"tuned, programs", true, false, true, true},
    {"all", true, true, true, true},
    {"all, the folder moved", true, true, true, true, Reached::moved},
    {"all, read from a bundle", true, true, true, true, Reached::layer},
    {"all, loaded from a bundle", true, true, true, true, Reached::loaded},
};

struct Options {
    std::string backend = "opencl", from, keep, json;
    int repetitions = 3;
};

struct Start {
    double first_token_ms = 0, tuning_ms = 0;
    double searched_ms = 0;    ///< part of tuning_ms: the search, without storing its results
    double first_calls_ms = 0; ///< the first calls of both functions
    double told_ms = 0;        ///< the saving in the cache's statistics, all kinds together
    /// The time that a start without a cache takes, because such a start stores nothing.
    [[nodiscard]] double whole_ms() const { return (searched_ms > 0 ? searched_ms : tuning_ms) + first_calls_ms; }
    std::uint64_t compiled = 0;
    std::string outcome; ///< the outcome of `prompt`
};

struct Cache {
    fs::path folder, bundle;
};

/// The caches of two starts, with and without tuning. Both start without a cache, so the stored times are those of a
/// cold start.
struct Caches {
    explicit Caches(const fs::path& home)
        : plain{home / "cache", home / "cache.wgb"}, tuned{home / "tuned", home / "tuned.wgb"}
    {
    }
    [[nodiscard]] const Cache& of(bool tunes) const { return tunes ? tuned : plain; }
    [[nodiscard]] bool are_there() const
    {
        return fs::exists(plain.folder) && fs::exists(plain.bundle) && fs::exists(tuned.folder) &&
               fs::exists(tuned.bundle);
    }
    Cache plain, tuned;
};

/// Runs a new process.
Start start(const Options& options, bool tunes, const char* prompt, const fs::path& folder, const fs::path& bundle = {})
{
    std::vector<std::string> arguments{"--backend", options.backend, "--cache-dir", folder,     "--prompt",
                                       prompt,      "--tokens",      "8",           "--policy", "read_write"};
    if (tunes) arguments.insert(arguments.end(), {"--tune", "enumerate"});
    if (!bundle.empty()) arguments.insert(arguments.end(), {"--bundle", bundle});
    const auto run = bench::result_of(bench::program_of(WARMGRAPH_LLM_BINARY), std::move(arguments));
    Start result{.first_token_ms = run.at("time_to_first_token_ms"),
                 .tuning_ms = run.at("tuning_ms"),
                 .compiled = run.at("programs_compiled"),
                 .outcome = run.at("functions").at("prompt").at("outcome")};
    for (const auto& [name, function] : run.at("functions").items())
        result.first_calls_ms += function.at("first_call_ms").get<double>();
    for (const auto& [kernel, tuning] : run.at("tuning").items())
        if (tuning.at("outcome") == "tuned") result.searched_ms += tuning.at("search_ms").get<double>();
    for (const auto& [kind, saved] : run.at("saved_ms").items()) result.told_ms += saved.get<double>();
    return result;
}

void run_tool(std::vector<std::string> arguments)
{
    const TempDir own;
    llm::Command command{bench::program_of(WARMGRAPH_TOOL_BINARY), std::move(arguments), {}, own.path() / "output", {}};
    if (const int code = llm::run(command); code != 0)
        throw std::runtime_error(fmt::format("warmgraph {} ended with exit code {}", command.arguments.at(1), code));
}

/// The starts without and with tuning.
std::array<Start, 2> make(const Options& options, const Caches& caches)
{
    // Takes the median of the short starts: apart from compiling, their waiting times vary by more than some rows save.
    const TempDir own; // reads files into memory before the first measured process
    static_cast<void>(start(options, false, k_known, own.path() / "cache"));
    std::array<Start, 2> made;
    for (const bool tunes : {false, true}) {
        const Cache& cache = caches.of(tunes);
        std::vector<std::pair<double, fs::path>> tries;
        std::map<fs::path, Start> starts;
        for (int i = 0; i < (tunes ? 1 : options.repetitions); ++i) {
            const fs::path folder = own.path() / fmt::format("{}_{}", tunes, i);
            const Start& one = starts[folder] = start(options, tunes, k_known, folder);
            tries.emplace_back(one.whole_ms(), folder);
        }
        std::ranges::sort(tries);
        const fs::path& middle = tries[tries.size() / 2].second;
        fs::copy(middle, cache.folder, fs::copy_options::recursive);
        made[tunes ? 1 : 0] = starts[middle];
        run_tool({"bundle", "create", cache.bundle, "--cache-dir", cache.folder});
    }
    return made;
}

/// Whether the row keeps this sub-folder of the cache folder.
bool keeps(const Row& row, const std::string& name)
{
    if (name == "autotune") return row.has_tuned;
    if (name == "compiled") return row.has_programs;
    return row.has_graphs || name == "CACHEDIR.TAG"; // functions, and their graphs' device code
}

/// Copies the row's layers into a folder of their own.
void lay_out(const Row& row, const Cache& cache, const fs::path& folder)
{
    if (row.reached == Reached::layer) return;
    if (row.reached == Reached::loaded) {
        run_tool({"bundle", "load", cache.bundle, "--cache-dir", folder});
        return;
    }
    if (!row.has_graphs && !row.has_programs && !row.has_tuned) return;
    fs::create_directory(folder);
    for (const auto& item : fs::directory_iterator(cache.folder))
        if (keeps(row, item.path().filename()))
            fs::copy(item.path(), folder / item.path().filename(), fs::copy_options::recursive);
}

Start one_start(const Options& options, const Row& row, const Cache& cache, const char* prompt)
{
    const TempDir dir;
    fs::path folder = dir.path() / "cache";
    lay_out(row, cache, folder);
    if (row.reached == Reached::moved) {
        fs::create_directories(dir.path() / "moved" / "to");
        fs::rename(folder, dir.path() / "moved" / "to" / "elsewhere");
        folder = dir.path() / "moved" / "to" / "elsewhere";
    }
    return start(options, row.tunes, prompt, folder, row.reached == Reached::layer ? cache.bundle : fs::path());
}

std::vector<Start> starts_of(const Options& options, const Row& row, const Caches& caches, const char* prompt)
{
    const bool is_long = row.tunes && !row.has_tuned; // this start tunes
    std::vector<Start> starts;
    for (int i = 0; i < (is_long ? 1 : options.repetitions); ++i)
        starts.push_back(one_start(options, row, caches.of(row.tunes), prompt));
    return starts;
}

/// The start with the median of `figure`.
template <class Figure>
Start median(std::vector<Start> starts, Figure figure)
{
    std::ranges::sort(starts, {}, figure);
    return starts[starts.size() / 2];
}

std::string text_of(const Start& start)
{
    return fmt::format("{}, {} compiled{}", start.outcome, start.compiled,
                       start.tuning_ms >= 1 ? ", tuning " + llm::milliseconds(start.tuning_ms) : "");
}

nlohmann::json json_of(const Start& start)
{
    return {{"first_token_ms", start.first_token_ms},
            {"tuning_ms", start.tuning_ms},
            {"searched_ms", start.searched_ms},
            {"first_calls_ms", start.first_calls_ms},
            {"told_ms", start.told_ms},
            {"programs_compiled", start.compiled},
            {"outcome", start.outcome}};
}

/// Compares the saving in a start's statistics with the real saving: the time of the start that made the cache minus
/// this start's time. Two starts that compile differ by a tenth.
void add_savings(llm::Table& table, const Row& row, const Start& without, const Start& with)
{
    // The start that made the cache already loaded programs that its own tuning had stored.
    const double truth = without.whole_ms() + without.told_ms - with.whole_ms();
    table.row({fmt::format("{}{}", row.name, row.tunes ? ", with tuning" : ""), llm::milliseconds(with.told_ms),
               llm::milliseconds(truth), fmt::format("{:.2f}", with.told_ms / truth)});
}

nlohmann::json measure(const Options& options, const Caches& caches, const std::optional<std::array<Start, 2>>& made)
{
    llm::Table table, savings;
    savings.row({"known shape, both functions", "told", "true", "told / true"});
    savings.rule();
    nlohmann::json json = nlohmann::json::array();
    std::optional<bool> tunes;
    for (const Row& row : k_rows) {
        std::fprintf(stderr, "measuring: %s%s ...\n", row.name, row.tunes ? ", with tuning" : "");
        if (tunes != row.tunes) {
            if (tunes) table.rule();
            table.row({row.tunes ? "what the cache has; with tuning" : "what the cache has", "known shape", "",
                       "new shape", ""});
            table.rule();
            tunes = row.tunes;
        }
        const auto starts = starts_of(options, row, caches, k_known);
        const Start known = median(starts, &Start::first_token_ms),
                    other = median(starts_of(options, row, caches, k_new), &Start::first_token_ms);
        table.row({row.name, llm::milliseconds(known.first_token_ms), text_of(known),
                   llm::milliseconds(other.first_token_ms), text_of(other)});
        if (made && (row.has_graphs || row.has_programs || row.has_tuned))
            add_savings(savings, row, (*made)[row.tunes ? 1 : 0], median(starts, &Start::whole_ms));
        json.push_back({{"cache", row.name},
                        {"tunes", row.tunes},
                        {"known shape", json_of(known)},
                        {"new shape", json_of(other)}});
    }
    std::cout << "time to the first token, the device and the weights being there; medians of " << options.repetitions
              << " starts\n\n"
              << table.text(llm::colour_of_stdout());
    if (made) std::cout << "\nwhat the cache's statistics say it saved\n\n" << savings.text(llm::colour_of_stdout());
    return json;
}

nlohmann::json run(const Options& options)
{
    const TempDir own;
    const std::string& given = options.from.empty() ? options.keep : options.from;
    const fs::path home = given.empty() ? own.path() : fs::absolute(given);
    const Caches caches{home};
    std::optional<std::array<Start, 2>> made; // empty with --from: the times on the other machine are not known
    if (options.from.empty()) {
        std::fprintf(stderr, "making a cache, tuning included ...\n");
        fs::create_directories(home);
        made = make(options, caches);
    } else if (!caches.are_there()) {
        throw std::runtime_error(fmt::format(
            "'{}' has no cache, cache.wgb, tuned and tuned.wgb: give a folder that --keep left", options.from));
    }
    return measure(options, caches, made);
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{"Starts of the sample's service with each layer of its cache alone, with all, and with none."};
    Options options;
    app.add_option("--backend", options.backend, "opencl or cuda")->capture_default_str();
    app.add_option("--from", options.from, "a folder that --keep left, on another machine maybe");
    app.add_option("--keep", options.keep, "leave the cache and its bundle there");
    app.add_option("--repetitions", options.repetitions, "of each start")
        ->capture_default_str()
        ->check(CLI::Range(1, 99));
    app.add_option("--json", options.json, "write the figures to this file as well");
    CLI11_PARSE(app, argc, argv);
    try {
        const nlohmann::json result = run(options);
        if (options.json.empty()) return 0;
        std::ofstream file{options.json};
        file << result.dump(2) << "\n";
        if (!file.flush()) throw std::runtime_error("cannot write " + options.json);
        return 0;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "warmgraph_layers: %s\n", error.what());
        return 1;
    }
}
