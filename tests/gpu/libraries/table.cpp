#include "table.hpp"

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <fstream>
#include <iterator>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.hpp"

namespace warmgraph::test::libraries {

namespace {

constexpr std::size_t k_reason_width = 100; // characters of a reason in the table; to_json writes the whole reason
constexpr std::size_t k_log_bytes = 2000;

/// Runs this program with these arguments. Its output goes to `log`. Returns "" for the exit status 0, else a text that
/// says how the program ended.
std::string run_self(std::vector<std::string> arguments, const std::filesystem::path& log)
{
    arguments.insert(arguments.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
    std::vector<char*> pointers;
    for (std::string& argument : arguments) pointers.push_back(argument.data());
    pointers.push_back(nullptr);
    posix_spawn_file_actions_t actions{};
    ::posix_spawn_file_actions_init(&actions);
    ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
    pid_t child = 0;
    const int error = ::posix_spawn(&child, pointers[0], &actions, nullptr, pointers.data(), environ);
    ::posix_spawn_file_actions_destroy(&actions);
    if (error != 0) return "it could not be started: " + std::generic_category().message(error);
    int status = 0;
    while (::waitpid(child, &status, 0) < 0)
        if (errno != EINTR) return "it could not be waited for";
    if (WIFEXITED(status))
        return WEXITSTATUS(status) == 0 ? "" : fmt::format("it ended with status {}", WEXITSTATUS(status));
    if (WTERMSIG(status) == SIGALRM) return fmt::format("it was ended after {} s", k_limit_seconds);
    return fmt::format("it was ended by signal {}", WTERMSIG(status));
}

std::string end_of(const std::filesystem::path& log)
{
    std::ifstream file{log};
    const std::string text{std::istreambuf_iterator<char>{file}, {}};
    return text.size() <= k_log_bytes ? text : text.substr(text.size() - k_log_bytes);
}

/// Runs one process of a case. If the process ended early, `error` in the result says how it ended.
Finding run_mode(const std::string& name, Mode mode, const std::filesystem::path& folder, Row& row)
{
    const auto log = folder / (std::string{to_string(mode)} + ".log");
    const std::string ended =
        run_self({"--case", name, "--mode", std::string{to_string(mode)}, "--dir", folder.string()}, log);
    Finding finding = read_finding(mode, folder).value_or(Finding{.error = "it said nothing"});
    if (!ended.empty()) finding.error = finding.error.empty() ? ended : finding.error + "; " + ended;
    if (!finding.error.empty()) row.log = end_of(log);
    return finding;
}

/// The fault of a run that was compared with native results; "" if the run is right.
std::string fault_of(const Finding& finding)
{
    if (!finding.lacking.empty()) return "lacks what the native run had: " + finding.lacking;
    return finding.error.empty() ? finding.difference : finding.error;
}

Row& conclude(Row& row, Verdict verdict, std::string reason)
{
    row.verdict = verdict;
    row.reason = std::move(reason);
    return row;
}

std::string one_line(std::string text, std::size_t width)
{
    std::ranges::replace(text, '\n', ' ');
    return text.size() <= width ? text : text.substr(0, width - 3) + "...";
}

std::string row_text(const Row& row)
{
    const auto mark = [](bool is) { return is ? "yes" : "no"; };
    const bool is_wrong = row.verdict == Verdict::wrong;
    return fmt::format("{:38}{:8}{:10}{:16}{:10}{}\n", row.name, mark(row.is_native_run), mark(row.is_recorded),
                       is_wrong                ? "NO"
                       : !row.is_recorded      ? "-"
                       : row.is_replayed_equal ? "yes"
                                               : "NO",
                       to_string(row.verdict), one_line(row.reason, k_reason_width));
}

} // namespace

std::string_view to_string(Verdict verdict) noexcept
{
    switch (verdict) {
    case Verdict::equal: return "equal";
    case Verdict::refused: return "refused";
    case Verdict::wrong: return "WRONG";
    case Verdict::unproven: return "UNPROVEN";
    case Verdict::lacking: return "lacking";
    }
    return "?";
}

Row run_case(const Cases::Entry& entry, const std::filesystem::path& folder)
{
    std::filesystem::create_directories(folder);
    Row row{.name = entry.name};
    const Finding native = run_mode(entry.name, Mode::native, folder, row);
    if (!native.lacking.empty()) return conclude(row, Verdict::lacking, native.lacking);
    if (const std::string fault = fault_of(native); !fault.empty())
        return conclude(row, Verdict::unproven, "native: " + fault);
    row.is_native_run = true;

    const Finding record = run_mode(entry.name, Mode::record, folder, row);
    row.calls = record.calls;
    row.is_recorded = record.outcome == "recorded";
    if (const std::string fault = fault_of(record); !fault.empty())
        return conclude(row, Verdict::wrong,
                        "record: " + fault + (row.is_recorded || record.reason.empty() ? "" : " | " + record.reason));
    if (!row.is_recorded)
        return record.reason.empty() ? conclude(row, Verdict::wrong, record.outcome + " without a reason")
                                     : conclude(row, Verdict::refused, record.reason);
    if (native.is_counting) return conclude(row, Verdict::wrong, "recorded, but its numbers go on from call to call");

    const Finding replay = run_mode(entry.name, Mode::replay, folder, row);
    if (const std::string fault = fault_of(replay); !fault.empty())
        return conclude(row, Verdict::wrong, "replay: " + fault);
    const auto is_other = [](const std::string& outcome) { return outcome != "replayed"; };
    if (const auto other = std::ranges::find_if(replay.calls, is_other); other != replay.calls.end())
        return conclude(row, Verdict::wrong, "replay: " + *other + ": " + replay.reason);
    row.is_replayed_equal = true;
    // The results are right. But the recording process should replay its later calls, too; if it did not, the table
    // says so.
    const auto last = record.calls.empty() ? std::string{} : record.calls.back();
    return conclude(row, Verdict::equal, last == "replayed" ? "" : "where it was recorded, later calls were " + last);
}

std::string to_table(std::span<const Row> rows, const Cases& cases)
{
    std::string text = fmt::format("{:38}{:8}{:10}{:16}{:10}{}\n", "case", "native", "recorded", "replayed equal",
                                   "verdict", "reason");
    for (const Row& row : rows) text += row_text(row);
    for (const auto& [library, why] : cases.left_out) text += fmt::format("left out: {}: {}\n", library, why);
    const auto count = [&](Verdict verdict) { return std::ranges::count(rows, verdict, &Row::verdict); };
    text += fmt::format("cases {}, recorded {}, equal {}, wrong {}, refused {}", rows.size(),
                        std::ranges::count(rows, true, &Row::is_recorded), count(Verdict::equal), count(Verdict::wrong),
                        count(Verdict::refused));
    text += fmt::format("; native run failed {}, lacking here {}\n", count(Verdict::unproven), count(Verdict::lacking));
    return text;
}

std::string to_json(std::span<const Row> rows, const Cases& cases)
{
    nlohmann::json all{{"cases", nlohmann::json::array()}, {"left_out", nlohmann::json::object()}};
    for (const Row& row : rows)
        all["cases"].push_back({{"case", row.name},
                                {"verdict", to_string(row.verdict)},
                                {"native", row.is_native_run},
                                {"recorded", row.is_recorded},
                                {"replayed_equal", row.is_replayed_equal},
                                {"reason", row.reason},
                                {"calls", row.calls},
                                {"log", row.log}});
    for (const auto& [library, why] : cases.left_out) all["left_out"][library] = why;
    return all.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

} // namespace warmgraph::test::libraries
