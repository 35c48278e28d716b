// warmgraph_llm_demo: starts the same service three times, in three processes: without a cache, with an empty cache,
// and with the cache from the second start.
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <system_error>
#include <vector>

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <sys/statvfs.h>
#include <unistd.h>

#include "result.hpp"
#include "spawn.hpp"
#include "table.hpp"

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

struct Options {
    std::string prompt = "Once upon a time";
    std::uint32_t tokens = 224;
    std::string keep;
    std::string backend = "opencl";
    std::string device;
    std::string tune = "off";
    bool is_json = false;
};

/// Returns a folder in memory if possible. PoCL syncs each file that it unpacks from a program binary (21 files, 2.8 ms
/// each on a slow disk); on a disk this would dominate the measurement.
fs::path fast_folder()
{
    const fs::path memory = "/dev/shm";
    struct statvfs info{};
    // PoCL loads shared objects from the folder, which containers often forbid.
    const bool usable = ::access(memory.c_str(), W_OK | X_OK) == 0 && ::statvfs(memory.c_str(), &info) == 0 &&
                        (info.f_flag & ST_NOEXEC) == 0;
    return usable ? memory : fs::temp_directory_path();
}

/// The given folder, or a temporary one that the destructor removes.
class Folder {
public:
    explicit Folder(const std::string& keep, const fs::path& where = fs::temp_directory_path())
        : m_is_temporary(keep.empty())
    {
        if (m_is_temporary) {
            std::string pattern = (where / "warmgraph-demo-XXXXXX").string();
            if (::mkdtemp(pattern.data()) == nullptr) {
                throw std::system_error(errno, std::generic_category(), "cannot create " + pattern);
            }
            m_path = pattern;
        } else {
            m_path = fs::absolute(keep);
            fs::create_directories(m_path);
            // A folder with an old cache would make the cold run a warm one.
            if (!fs::is_empty(m_path))
                throw std::runtime_error(fmt::format("'{}' is not empty: --keep needs a new folder", keep));
        }
    }
    Folder(const Folder&) = delete;
    Folder& operator=(const Folder&) = delete;
    ~Folder()
    {
        std::error_code ignored;
        if (m_is_temporary) fs::remove_all(m_path, ignored);
    }
    [[nodiscard]] const fs::path& path() const noexcept { return m_path; }

private:
    bool m_is_temporary;
    fs::path m_path;
};

/// Starts the service once. Each start has an empty folder for PoCL's kernel cache, and CUDA's JIT cache is off, so
/// that only warmgraph's cache counts. (PoCL's cache stays on: without it, PoCL 3.1 removes its files when a program is
/// released, and sometimes aborts: "Can't get stat() on ...".)
Json start_service(const Options& options, const fs::path& folder, const std::string& name, const std::string& policy)
{
    const fs::path result = folder / (name + ".json");
    const Folder pocl{"", fast_folder()};
    llm::Command command;
    command.program = fs::read_symlink("/proc/self/exe").parent_path() / "warmgraph_llm";
    command.arguments = {"--prompt",  options.prompt,  "--tokens",    std::to_string(options.tokens),
                         "--backend", options.backend, "--cache-dir", (folder / "cache").string(),
                         "--policy",  policy,          "--json",      result.string()};
    if (policy != "off") command.arguments.insert(command.arguments.end(), {"--tune", options.tune});
    if (!options.device.empty()) command.arguments.insert(command.arguments.end(), {"--device", options.device});
    command.environment = {
        {"POCL_KERNEL_CACHE", "1"}, {"POCL_CACHE_DIR", pocl.path().string()}, {"CUDA_CACHE_DISABLE", "1"}};
    command.output = folder / (name + ".txt");
    const int code = llm::run(command);
    if (code != 0) throw std::runtime_error(fmt::format("the {} run failed with exit code {}", name, code));
    std::ifstream file(result);
    return Json::parse(file);
}

bool is_replayed(const Json& run)
{
    const Json& functions = run.at("functions");
    return run.at("misses") == 0 && !functions.empty() &&
           std::all_of(functions.begin(), functions.end(), [](const Json& f) { return f.at("outcome") == "replayed"; });
}

Json compare(Json without, Json cold, Json warm)
{
    const double ratio =
        without.at("time_to_first_token_ms").get<double>() / warm.at("time_to_first_token_ms").get<double>();
    const auto tells_the_same = [&](const Json& run) {
        return run.at("text") == cold.at("text") && run.at("tokens") == cold.at("tokens");
    };
    const bool is_same = tells_the_same(without) && tells_the_same(warm);
    const bool is_warm = is_replayed(warm);
    return {{"without", std::move(without)}, {"cold", std::move(cold)},   {"warm", std::move(warm)},
            {"same_text", is_same},          {"fully_replayed", is_warm}, {"first_token_ratio", ratio}};
}

// --- Tables for people ---------------------------------------------------------------------------------------------

/// Makes rows of a table. A row compares one number of all runs, e.g. /functions/decode/first_call_ms.
class Rows {
public:
    Rows(llm::Table& table, const Json& all)
        : m_table(table), m_without(all.at("without")), m_cold(all.at("cold")), m_warm(all.at("warm"))
    {
    }

    [[nodiscard]] std::vector<std::string> times(const std::string& title, const std::string& path) const
    {
        return {title, cell(m_without, path, llm::milliseconds), cell(m_cold, path, llm::milliseconds),
                cell(m_warm, path, llm::milliseconds)};
    }
    [[nodiscard]] std::vector<std::string> times_and_ratio(const std::string& title, const std::string& path) const
    {
        std::vector<std::string> row = times(title, path);
        const Json::json_pointer pointer{path};
        if (m_without.contains(pointer) && m_warm.contains(pointer)) {
            row.push_back(
                fmt::format("{:.0f}x", m_without.at(pointer).get<double>() / m_warm.at(pointer).get<double>()));
        }
        return row;
    }
    [[nodiscard]] std::vector<std::string> steady(const std::string& title, const std::string& path) const
    {
        return {title, cell(m_without, path, llm::microseconds), cell(m_cold, path, llm::microseconds),
                cell(m_warm, path, llm::microseconds)};
    }
    /// The gain of the tuned geometries over the default: the tuning measured it, and a later start reads it.
    void gains() const
    {
        if (m_warm.at("tuning").empty()) return;
        m_table.row(times("tuning", "/tuning_ms"));
        for (const std::string& kernel : names(m_warm, "/tuning")) {
            const std::string path = "/tuning/" + kernel;
            m_table.row({kernel, "default", text(m_cold, path + "/config"), text(m_warm, path + "/outcome")});
            m_table.row({"  one layer", cell(m_cold, path + "/default_ms", in_microseconds),
                         cell(m_cold, path + "/best_ms", in_microseconds),
                         cell(m_warm, path + "/best_ms", in_microseconds),
                         fmt::format("{:.2f}x", m_warm.at("tuning").at(kernel).at("gain").get<double>())});
        }
        m_table.rule();
    }
    void phases(const std::string& function) const
    {
        const std::string path = "/functions/" + function;
        m_table.row({function, text(m_without, path + "/outcome"), text(m_cold, path + "/outcome"),
                     text(m_warm, path + "/outcome")});
        auto all = llm::merged(names(m_warm, path + "/phases"), names(m_without, path + "/phases"));
        for (const std::string& name : llm::merged(std::move(all), names(m_cold, path + "/phases"))) {
            m_table.row(times("  " + name, path + "/phases/" + name));
        }
    }

private:
    using Format = std::string (*)(double);
    [[nodiscard]] static std::string in_microseconds(double milliseconds)
    {
        return llm::microseconds(1000 * milliseconds);
    }
    [[nodiscard]] static std::string cell(const Json& run, const std::string& path, Format format)
    {
        const Json::json_pointer pointer{path};
        return run.contains(pointer) && run.at(pointer).is_number() ? format(run.at(pointer).get<double>()) : "-";
    }
    [[nodiscard]] static std::string text(const Json& run, const std::string& path)
    {
        const Json::json_pointer pointer{path};
        return run.contains(pointer) ? run.at(pointer).get<std::string>() : "-";
    }
    [[nodiscard]] static std::vector<std::string> names(const Json& run, const std::string& path)
    {
        std::vector<std::string> keys;
        const Json::json_pointer pointer{path};
        if (!run.contains(pointer)) return keys;
        for (const auto& item : run.at(pointer).items()) keys.push_back(item.key());
        return keys;
    }

    llm::Table& m_table;
    const Json& m_without;
    const Json& m_cold;
    const Json& m_warm;
};

/// The table's main result in one sentence.
std::string conclusion(const Json& both)
{
    const auto first_token = [&](const char* run) {
        return llm::milliseconds(both.at(run).at("time_to_first_token_ms").get<double>());
    };
    return llm::strong(
        fmt::format("A later start gives its first token after {}, without the cache after {}: {:.0f}x sooner, "
                    "and the same text.",
                    first_token("warm"), first_token("without"), both.at("first_token_ratio").get<double>()),
        llm::colour_of_stdout());
}

void print_for_people(const Json& both)
{
    llm::Table table;
    const Rows rows{table, both};
    table.row({"", "without cache", "first start", "later starts"});
    table.row(rows.times("context (the floor)", "/phases/context"));
    table.row(rows.times("weights", "/phases/weights"));
    for (const char* function : {"prompt", "decode"}) {
        table.rule();
        rows.phases(function);
    }
    table.rule();
    rows.gains();
    table.strong_row(rows.times_and_ratio("first token", "/time_to_first_token_ms"));
    table.row(rows.times_and_ratio("first token, with context", "/time_to_first_token_with_context_ms"));
    table.row(rows.times_and_ratio("decode, first call", "/functions/decode/first_call_ms"));
    table.row(rows.steady("decode, later calls", "/functions/decode/steady_call_us"));
    table.row({"recording, afterwards", "-", llm::milliseconds(both.at("cold").at("recording_ms").get<double>()), "-"});

    const bool is_same = both.at("same_text").get<bool>();
    fmt::print("cold: {}\nwarm: {}\n\n{}\n", both.at("cold").at("text").get<std::string>(),
               is_same ? "the same text" : both.at("warm").at("text").get<std::string>(),
               table.text(llm::colour_of_stdout()));
    fmt::print("each run: a new process, PoCL's own kernel cache empty and in {}, CUDA's JIT cache off\n",
               fast_folder().string());
    for (const char* run : {"cold", "warm"}) {
        fmt::print("{}  {}\n", run, both.at(run).at("summary").get<std::string>());
    }
    if (is_same && both.at("fully_replayed").get<bool>()) fmt::print("\n{}\n", conclusion(both));
}

void declare(CLI::App& app, Options& options)
{
    app.add_option("--prompt", options.prompt, "how the story begins, at most 128 bytes")->capture_default_str();
    app.add_option("--tokens", options.tokens, "how many tokens at most")
        ->capture_default_str()
        ->check(CLI::Range(1, 255));
    app.add_option("--keep", options.keep, "a new folder for the cache and both results; default: one that is removed");
    app.add_option("--backend", options.backend, "kind of device: opencl or cuda")->capture_default_str();
    app.add_option("--device", options.device, "index or part of the name; default: the backend's first");
    app.add_option("--tune", options.tune, "time the kernels' geometries first: enumerate or descent")
        ->capture_default_str()
        ->check(CLI::IsMember({"off", "enumerate", "descent"}));
    app.add_flag("--json", options.is_json, "print both results as JSON instead");
    app.footer("exit codes: 0 the warm run replayed everything and told the same story, 1 it did not, 2 wrong usage");
}

} // namespace

int main(int argc, char** argv)
{
    CLI::App app{
        "Starts a small language model three times: without a cache, with an empty one, and with a filled one."};
    Options options;
    declare(app, options);
    try {
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? 0 : 2;
    }
    try {
        const Folder folder{options.keep};
        Json without = start_service(options, folder.path(), "without", "off");
        Json cold = start_service(options, folder.path(), "cold", "read_write");
        Json warm = start_service(options, folder.path(), "warm", "read_write");
        const Json both = compare(std::move(without), std::move(cold), std::move(warm));
        if (options.is_json) {
            fmt::print("{}\n", both.dump(2));
        } else {
            print_for_people(both);
        }
        const bool is_same = both.at("same_text").get<bool>();
        const bool is_warm = both.at("fully_replayed").get<bool>();
        if (!is_same) fmt::print(stderr, "warmgraph_llm_demo: the warm run told another story than the cold one\n");
        if (!is_warm) {
            fmt::print(stderr, "warmgraph_llm_demo: the warm run was not fully replayed: {}\n",
                       both.at("warm").at("miss_reasons").dump());
        }
        return is_same && is_warm ? 0 : 1;
    } catch (const std::exception& error) {
        fmt::print(stderr, "warmgraph_llm_demo: {}\n", error.what());
        return 1;
    }
}
