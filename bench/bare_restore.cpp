// warmgraph_bare_restore CACHE_DIR MODEL FUNCTION [options]: how long an entry's restore takes, beside what the driver alone needs
// for the same images, functions, nodes and edges. Every run is a process of its own; the ways take turns.
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bare_graph.hpp"
#include "bare_memory.hpp"
#include "facade_restore.hpp"
#include "processes.hpp"
#include "stored_entry.hpp"
#include "temp_dir.hpp"
#include "timing.hpp"

namespace {

namespace bench = warmgraph::bench;
namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr std::string_view k_bare = "bare", k_warm = "bare-warm", k_warmgraph = "warmgraph";
constexpr std::array k_ways{k_bare, k_warm, k_warmgraph};

constexpr const char* k_usage =
    R"(usage: warmgraph_bare_restore CACHE_DIR MODEL FUNCTION [--runs 5] [--rank world1global_rank0] [--entry DIGITS] [--json FILE]

Restores the function's CUDA entry in fresh processes, in turn, --runs times each:
  bare            context, memory, the decoded entry and its images are there; timed are the driver's calls alone: load the images,
                  get the functions, set attributes, add nodes and edges, instantiate, launch, wait
  bare-warm       the same after a first image was loaded and a graph of as many kernels instantiated and destroyed: what the driver
                  does once in a process is done
  warmgraph       device and memory are there, and Device::warm_up(), which does the same, is done; timed is from opening the cache
                  to the first result, reading and decoding included
Prints medians, in brackets the first and third quarters. The folder is left as it is: an entry that only its own program can load
(its guards hold that program's build id or sources) is copied to a folder in /dev/shm or /tmp under other guards.

MODEL is the model's name or its whole folder. --entry chooses among several entries by the first digits of the file's name. Inputs,
states and weights are zero, scalars 0 or what lies next to it in their range. $WARMGRAPH_CUDA_DRIVER names another libcuda.
Exit status: 0 measured, 1 it could not be, 2 wrong usage.
)";

struct WrongUsage : std::runtime_error {
    using std::runtime_error::runtime_error;
};

struct Options {
    bench::EntryName entry;
    int runs = 5;
    std::string json_file;
    std::map<std::string, std::string> child; ///< its own options
    std::string way;                          ///< of a child
};

Options read(std::span<char* const> words)
{
    Options options;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string word = words[i];
        if (!word.starts_with("--")) {
            names.push_back(word);
            continue;
        }
        if (i + 1 == words.size()) throw WrongUsage(word + " needs a value");
        const std::string value = words[++i];
        if (word == "--runs") {
            const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), options.runs);
            if (error != std::errc{} || end != value.data() + value.size() || options.runs < 1)
                throw WrongUsage(fmt::format("--runs is '{}', expected a number from 1", value));
        } else if (word == "--rank") {
            options.entry.rank = value;
        } else if (word == "--entry") {
            options.entry.digits = value;
        } else if (word == "--json") {
            options.json_file = value;
        } else if (word == "--child") {
            options.way = value;
        } else if (word == "--call" && !options.way.empty()) {
            options.child[word] = value;
        } else {
            throw WrongUsage(fmt::format("unknown option '{}'", word));
        }
    }
    if (options.way == k_warmgraph) return options;
    if (names.size() != 3)
        throw WrongUsage(fmt::format("{} names given, expected CACHE_DIR MODEL FUNCTION", names.size()));
    options.entry.cache_dir = names[0], options.entry.model = names[1], options.entry.function = names[2];
    return options;
}

void write(const std::string& file_name, const Json& document)
{
    std::ofstream file{file_name};
    file << document.dump(2) << "\n";
    if (!file.flush()) throw std::runtime_error("cannot write " + file_name);
}

int ordinal_of(const nlohmann::json& call)
{
    const std::string device = call.at("device"); // "cuda:0"
    return std::stoi(device.substr(device.find(':') + 1));
}

// --- one run

Json restore_bare(const Options& options)
{
    Json not_counted;
    bench::SteadyTime begin = bench::now();
    const auto lap = [&](const char* name) {
        not_counted[name] = bench::milliseconds_since(begin);
        begin = bench::now();
    };
    const auto stored = bench::read_entry(options.entry);
    bench::require_supported(stored);
    lap("read and decode");
    const bench::BareContext context{ordinal_of(bench::describe_call(stored.entry, {}))};
    lap("context");
    const bench::BareMemory memory{context, stored};
    lap("memory");
    bench::BareGraph graph{context, stored, memory.regions()};
    lap("parameters");
    if (options.way == k_warm) {
        graph.warm_up();
        lap("warm up");
    }
    begin = bench::now();
    const auto times = graph.restore();
    const double total_ms = bench::milliseconds_since(begin);
    Json phases = Json::array();
    for (const auto& [name, took] : times) phases.push_back({name, took});
    return {{"phases", phases},
            {"total_ms", total_ms},
            {"not_counted", not_counted},
            {"results", warmgraph::to_hex(memory.results(stored.entry.graph))}};
}

Json restore_with_library(const Options& options)
{
    if (::setenv("WARMGRAPH_VERIFY", "never", 1) != 0) throw std::runtime_error("cannot set WARMGRAPH_VERIFY");
    std::ifstream file{options.child.at("--call")};
    return bench::restore_through_facade(nlohmann::json::parse(file));
}

int run_child(const Options& options)
{
    write(options.json_file, options.way == k_warmgraph ? restore_with_library(options) : restore_bare(options));
    return 0;
}

// --- all runs

/// Of one way, by phase in their order.
struct Figures {
    std::vector<std::string> phases;
    std::map<std::string, std::vector<double>> times;
    std::vector<double> totals;
    std::map<std::string, std::vector<double>> not_counted;
    std::set<std::string> results;

    void add(const nlohmann::json& run)
    {
        for (const auto& phase : run.at("phases")) {
            const std::string name = phase.at(0);
            if (!times.contains(name)) phases.push_back(name);
            times[name].push_back(phase.at(1));
        }
        totals.push_back(run.at("total_ms"));
        for (const auto& [name, took] : run.at("not_counted").items()) not_counted[name].push_back(took);
        results.insert(run.at("results").get<std::string>());
    }
};

/// The value below which `part` quarters of them lie, between two of them where none is there.
double quarter(std::vector<double> values, std::size_t part)
{
    std::ranges::sort(values);
    const double place = static_cast<double>((values.size() - 1) * part) / 4;
    const auto below = static_cast<std::size_t>(place);
    const double above = values[std::min(below + 1, values.size() - 1)];
    return std::lerp(values[below], above, place - static_cast<double>(below));
}

std::string cell(const std::vector<double>& values)
{
    return fmt::format("{:9.3f} ({:.3f}-{:.3f})", quarter(values, 2), quarter(values, 1), quarter(values, 3));
}

std::string row(const std::string& name, const std::vector<std::string>& cells)
{
    std::string text = fmt::format("{:<24}", name);
    for (const std::string& one : cells) text += fmt::format("{:<30}", one);
    return text.substr(0, text.find_last_not_of(' ') + 1) + "\n";
}

std::string sum_text(const std::map<std::string, std::vector<double>>& not_counted)
{
    std::string text;
    for (const auto& [name, values] : not_counted)
        text += fmt::format("{}{} {:.1f}", text.empty() ? "" : ", ", name, quarter(values, 2));
    return text;
}

std::string table(const std::map<std::string_view, Figures>& figures)
{
    const Figures &bare = figures.at(k_bare), &warm = figures.at(k_warm), &library = figures.at(k_warmgraph);
    std::string text = row("ms, medians", {"bare", "bare-warm"}) + fmt::format("{:-<84}\n", "");
    for (const std::string& phase : bare.phases)
        text += row(phase, {cell(bare.times.at(phase)), cell(warm.times.at(phase))});
    text += row("total", {cell(bare.totals), cell(warm.totals)});
    text += "\n" + row("ms, medians", {"warmgraph"}) + fmt::format("{:-<84}\n", "");
    for (const std::string& phase : library.phases) text += row(phase, {cell(library.times.at(phase))});
    text += row("total", {cell(library.totals)}) + "\n";
    for (const auto& [way, of] : figures)
        if (way != k_warmgraph)
            text +=
                fmt::format("warmgraph / {:<20} {:.2f}x\n", way, quarter(library.totals, 2) / quarter(of.totals, 2));
    for (const auto& [way, of] : figures)
        text += fmt::format("not counted, {}: {} ms\n", way, sum_text(of.not_counted));
    return text;
}

/// Whether all did the same work.
std::string results_text(const std::map<std::string_view, Figures>& figures, std::size_t compared)
{
    if (compared == 0) return "not compared: the entry has no output, and no state of at most 64 MiB";
    std::set<std::string> all;
    for (const auto& [way, of] : figures) all.insert(of.results.begin(), of.results.end());
    if (all.size() == 1) return "the same bytes in every run";
    for (const auto& [way, of] : figures)
        if (of.results.size() > 1) return fmt::format("differ from run to run ({}): they cannot be compared", way);
    return "DIFFER between the ways: they did not do the same work";
}

Json figures_as_json(const std::map<std::string_view, Figures>& figures, const Json& runs)
{
    Json ways;
    for (const auto& [way, of] : figures) {
        const auto quarters = [](const std::vector<double>& values) {
            return Json{{"q1", quarter(values, 1)}, {"median", quarter(values, 2)}, {"q3", quarter(values, 3)}};
        };
        Json phases;
        for (const std::string& phase : of.phases) phases[phase] = quarters(of.times.at(phase));
        ways[std::string(way)] = {
            {"total", quarters(of.totals)}, {"phases", phases}, {"runs", runs.at(std::string(way))}};
    }
    return ways;
}

std::vector<std::string> arguments_of(std::string_view way, const bench::EntryName& entry, const fs::path& call)
{
    if (way == k_warmgraph) return {"--call", call.string()};
    return {entry.cache_dir.string(), entry.model, entry.function, "--rank", entry.rank, "--entry", entry.digits};
}

int measure(const Options& options)
{
    const auto stored = bench::read_entry(options.entry); // and its files are in the page cache
    bench::require_supported(stored);
    const bool memory_files = fs::exists("/dev/shm");
    const warmgraph::test::TempDir folder{memory_files ? fs::path("/dev/shm") : fs::temp_directory_path()};
    nlohmann::json call = bench::describe_call(stored.entry, fs::absolute(options.entry.cache_dir));
    const std::string device = bench::BareDriver::get().describe(ordinal_of(call));
    const auto& key = stored.entry.header.key;
    std::cout << fmt::format("{}/{} {}: {}\n{}\n", key.function.model_info, key.function.function,
                             warmgraph::short_hex(key.guards_digest), bench::describe(stored), device);
    if (const auto why = bench::why_not_loadable(stored)) {
        const fs::path copy = folder.path() / "cache";
        warmgraph::cachefmt::Entry entry = stored.entry;
        entry.header.key = bench::copy_loadable(stored, copy);
        // What describes the call are the copy's guards.
        bench::EntryName name{copy, entry.header.key.function.model_info, key.function.function, key.function.rank};
        call = bench::describe_call(bench::read_entry(name).entry, copy);
        std::cout << "warmgraph restores a copy under other guards: " << *why << "\n";
    }
    std::cout << std::endl;
    const fs::path call_file = folder.path() / "call.json";
    write(call_file.string(), call);

    bench::EntryName name = options.entry;
    name.model = key.function.model_info;
    name.digits = to_hex(key.guards_digest);
    std::map<std::string_view, Figures> figures;
    Json runs;
    for (int run = 0; run < options.runs; ++run) {
        for (std::size_t turn = 0; turn < k_ways.size(); ++turn) { // each is the first one in its turn
            const std::string_view way = k_ways.at((turn + static_cast<std::size_t>(run)) % k_ways.size());
            const auto result = bench::child(std::string(way), arguments_of(way, name, call_file));
            figures[way].add(result);
            runs[std::string(way)].push_back(Json(result));
        }
    }
    const std::string results = results_text(figures, bench::compared_regions(stored.entry.graph).size());
    std::cout << table(figures) << "results: " << results << "\n";
    if (!options.json_file.empty())
        write(options.json_file, {{"function", key.function.function},
                                  {"model_info", key.function.model_info},
                                  {"entry", to_hex(key.guards_digest)},
                                  {"contents", bench::describe(stored)},
                                  {"device", device},
                                  {"results", results},
                                  {"ways", figures_as_json(figures, runs)}});
    return 0;
}

} // namespace

int main(int argc, char** argv)
{
    const std::span<char* const> words{argv + 1, argv + std::max(argc, 1)};
    if (std::ranges::any_of(words, [](const char* word) { return std::strcmp(word, "--help") == 0; })) {
        std::cout << k_usage;
        return 0;
    }
    try {
        const Options options = read(words);
        return options.way.empty() ? measure(options) : run_child(options);
    } catch (const WrongUsage& error) {
        std::cerr << "warmgraph_bare_restore: " << error.what() << "\n" << k_usage;
        return 2;
    } catch (const std::exception& error) {
        std::cerr << "warmgraph_bare_restore: " << error.what() << "\n";
        return 1;
    }
}
