// Prints a table of the CUDA libraries' work: which work can be recorded through a wrapped callable, and which replays
// are right.
#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <mutex>
#include <thread>

#include <fmt/format.h>

#include <fnmatch.h>
#include <unistd.h>

#include "child.hpp"
#include "table.hpp"

namespace warmgraph::test::libraries {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view k_usage =
    R"(usage: gpu_libraries [--only PATTERN,PATTERN...] [--json FILE] [--workers 4] [--keep FOLDER] [--list]

Each case runs in three processes: native (no cache), record (recorded, then called three times more), replay (a new process,
other addresses, nothing but the cache). What the last two leave is compared with what the first one left.
  --only    cases whose names match, with * and ?
  --json    the table with whole reasons, outcomes of each call, and the log of what failed
  --workers how many cases run at a time
  --keep    work in this folder and leave it: results, caches and logs of each case
  --list    names of the cases
Exit status 1: one was wrong, or its native run failed. 2: usage. 3: no CUDA device.
)";

constexpr int k_is_wrong = 1, k_usage_error = 2, k_no_device = 3;

struct Options {
    std::string only = "*", json{}, keep{};
    unsigned workers = 4;
    bool is_help = false, is_list = false;
    // options that only a child process gets
    std::string one_case{}, mode{}, folder{};
};

class UsageError : public std::runtime_error {
public:
    using std::runtime_error::runtime_error;
};

unsigned parse_workers(const std::string& text)
{
    char* end = nullptr;
    const unsigned long value = std::strtoul(text.c_str(), &end, 10);
    if (text.empty() || *end != '\0' || value < 1 || value > 64)
        throw UsageError("--workers is '" + text + "', expected 1 to 64");
    return static_cast<unsigned>(value);
}

Options parse(const std::vector<std::string>& words)
{
    Options options;
    const auto value = [&](std::size_t& i) {
        if (i + 1 == words.size()) throw UsageError(words[i] + " wants a value");
        return words[++i];
    };
    for (std::size_t i = 0; i < words.size(); ++i) {
        const std::string& word = words[i];
        if (word == "--help" || word == "-h")
            options.is_help = true;
        else if (word == "--list")
            options.is_list = true;
        else if (word == "--only")
            options.only = value(i);
        else if (word == "--json")
            options.json = value(i);
        else if (word == "--keep")
            options.keep = value(i);
        else if (word == "--workers")
            options.workers = parse_workers(value(i));
        else if (word == "--case")
            options.one_case = value(i);
        else if (word == "--mode")
            options.mode = value(i);
        else if (word == "--dir")
            options.folder = value(i);
        else
            throw UsageError("unknown argument '" + word + "'");
    }
    return options;
}

Cases all_cases()
{
    Cases all;
    add_cublas_cases(all);
    add_cublaslt_cases(all);
    add_cufft_cases(all);
    add_cusparse_cases(all);
    add_cusolver_cases(all);
    add_curand_cases(all);
    add_cudnn_cases(all);
    add_cub_thrust_cases(all);
    return all;
}

bool matches(const std::string& name, const std::string& patterns)
{
    std::size_t begin = 0;
    while (begin <= patterns.size()) {
        const std::size_t end = std::min(patterns.find(',', begin), patterns.size());
        if (::fnmatch(patterns.substr(begin, end - begin).c_str(), name.c_str(), 0) == 0) return true;
        begin = end + 1;
    }
    return false;
}

std::vector<Cases::Entry> chosen(const Cases& cases, const std::string& patterns)
{
    std::vector<Cases::Entry> result;
    for (const Cases::Entry& entry : cases.entries)
        if (matches(entry.name, patterns)) result.push_back(entry);
    if (result.empty()) throw UsageError("no case matches '" + patterns + "'; --list names them");
    return result;
}

/// Runs one case in this process. If the case hangs, SIGALRM ends the process.
int run_child(const Options& options)
{
    const auto mode = parse_mode(options.mode);
    if (!mode || options.folder.empty()) throw UsageError("--case wants --mode native|record|replay and --dir");
    ::alarm(k_limit_seconds);
    const Cases cases = all_cases();
    for (const Cases::Entry& entry : cases.entries) {
        if (entry.name != options.one_case) continue;
        const Finding finding = run_here(entry, *mode, options.folder);
        write_finding(finding, *mode, options.folder);
        if (!finding.error.empty()) fmt::print(stderr, "{}, {}: {}\n", entry.name, options.mode, finding.error);
        return 0;
    }
    throw UsageError("no case '" + options.one_case + "'");
}

/// The folder in which the cases work: a new folder that is removed at the end, or the folder of --keep.
class WorkFolder {
public:
    explicit WorkFolder(const std::string& kept) : m_is_kept(!kept.empty())
    {
        if (m_is_kept) {
            m_path = fs::absolute(kept);
            fs::create_directories(m_path);
            if (!fs::is_empty(m_path)) throw UsageError("--keep: " + m_path.string() + " is not empty");
            return;
        }
        std::string pattern = (fs::temp_directory_path() / "warmgraph-libraries-XXXXXX").string();
        if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("mkdtemp failed for " + pattern);
        m_path = pattern;
    }
    WorkFolder(const WorkFolder&) = delete;
    WorkFolder& operator=(const WorkFolder&) = delete;
    ~WorkFolder()
    {
        std::error_code ignored;
        if (!m_is_kept) fs::remove_all(m_path, ignored);
    }
    [[nodiscard]] const fs::path& path() const noexcept { return m_path; }

private:
    bool m_is_kept;
    fs::path m_path;
};

std::vector<Row> run_all(const std::vector<Cases::Entry>& entries, unsigned workers, const fs::path& folder)
{
    std::vector<Row> rows(entries.size());
    std::atomic<std::size_t> next = 0;
    std::mutex mutex; // protects standard error
    const auto work = [&] {
        for (std::size_t i = next++; i < entries.size(); i = next++) {
            rows[i] = run_case(entries[i], folder / entries[i].name);
            const std::lock_guard lock{mutex};
            fmt::print(stderr, "{}: {}\n", rows[i].name, to_string(rows[i].verdict));
        }
    };
    std::vector<std::jthread> threads;
    for (unsigned i = 0; i < workers; ++i) threads.emplace_back(work);
    threads.clear(); // joins the threads
    return rows;
}

int run_table(const Options& options)
{
    const Cases cases = all_cases();
    const auto entries = chosen(cases, options.only);
    if (options.is_list) {
        for (const Cases::Entry& entry : entries) fmt::print("{}\n", entry.name);
        for (const auto& [library, why] : cases.left_out) fmt::print("left out: {}: {}\n", library, why);
        return 0;
    }
    try {
        static_cast<void>(Device{"cuda:0"});
    } catch (const std::exception& error) {
        fmt::print(stderr, "gpu_libraries: no CUDA device, so nothing was run: {}\n", error.what());
        return k_no_device;
    }
    const WorkFolder folder{options.keep};
    const std::vector<Row> rows = run_all(entries, options.workers, folder.path());
    if (!options.json.empty()) std::ofstream{options.json} << to_json(rows, cases);
    fmt::print("{}", to_table(rows, cases));
    const auto is_bad = [](const Row& row) {
        return row.verdict == Verdict::wrong || row.verdict == Verdict::unproven;
    };
    return std::ranges::any_of(rows, is_bad) ? k_is_wrong : 0;
}

int run(const std::vector<std::string>& words)
{
    try {
        const Options options = parse(words);
        if (options.is_help) {
            fmt::print("{}", k_usage);
            return 0;
        }
        return options.one_case.empty() ? run_table(options) : run_child(options);
    } catch (const UsageError& error) {
        fmt::print(stderr, "gpu_libraries: {}\n{}", error.what(), k_usage);
        return k_usage_error;
    }
}

} // namespace
} // namespace warmgraph::test::libraries

int main(int argc, char** argv) { return warmgraph::test::libraries::run({argv + 1, argv + argc}); }
