#include "verbs/remote/transfers.hpp"

#include <algorithm>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::tool {

namespace {

constexpr double k_ms_of_second = 1000;

std::string failed_text(const RemoteTransfer& transfer)
{
    if (transfer.is_left_out) return "read-only: left out";
    std::string text;
    for (const auto& [word, failure] : transfer.failed)
        text += fmt::format("{}{} {}", text.empty() ? "" : ", ", failure.count, word);
    return text.empty() ? "0" : text;
}

std::string to_text(const Context& context, const std::vector<RemoteTransfer>& transfers, const std::string& moved)
{
    using enum Table::Align;
    constexpr std::size_t k_most = 200;
    Table table({{"remote"}, {moved, right}, {"already there", right}, {"failed"}, {"bytes", right}, {"time", right}},
                0, k_most);
    std::string reasons;
    for (const RemoteTransfer& one : transfers) {
        table.add({one.label, count_text(one.moved), count_text(one.there), failed_text(one), size_text(one.bytes),
                   time_text(one.seconds * k_ms_of_second)});
        if (one.unsigned_entries != 0)
            reasons += fmt::format("{}: {} without an accepted signature: readers need allow-unsigned in the URL; or "
                                   "`warmgraph sign`, and push again\n",
                                   printable(one.label, k_most), plural(one.unsigned_entries, "entry"));
        for (const auto& [word, failure] : one.failed)
            reasons += fmt::format("{}: {}: {}\n", printable(one.label, k_most), word, printable(failure.first, 1000));
    }
    return table.text(context.style) + reasons;
}

Json to_json(const RemoteTransfer& one, const std::string& moved)
{
    Json failed = Json::object();
    for (const auto& [word, failure] : one.failed)
        failed[word] = {{"count", failure.count}, {"message", failure.first}};
    return {{"remote", one.label},
            {moved, one.moved},
            {"there", one.there},
            {"failed", failed},
            {"bytes", one.bytes},
            {"seconds", one.seconds},
            {"unsigned", one.unsigned_entries},
            {"left_out", one.is_left_out}};
}

} // namespace

void RemoteTransfer::add_failure(std::string_view word, std::string message, std::uint64_t count)
{
    if (count == 0) return;
    Failure& failure = failed[std::string(word)];
    failure.count += count;
    if (failure.first.empty()) failure.first = std::move(message);
}

Result<std::vector<remote::Settings>> remotes_of(const std::vector<std::string>& urls)
{
    std::vector<remote::Settings> remotes;
    std::vector<std::string> lists = urls;
    if (lists.empty()) lists.push_back(environment("WARMGRAPH_REMOTE").value_or(""));
    for (const std::string& list : lists) {
        auto some = remote::parse_list(list, environment);
        if (!some) return std::unexpected(some.error());
        std::ranges::move(*some, std::back_inserter(remotes));
    }
    if (remotes.empty())
        return fail(ErrorCode::invalid_argument,
                    "no remote is named: give --remote URL, or set WARMGRAPH_REMOTE (such as s3://models/warmgraph)");
    return remotes;
}

int report_transfers(const Context& context, const std::vector<RemoteTransfer>& transfers, const std::string& column,
                     const std::string& key)
{
    if (context.output == Output::json) {
        Json remotes = Json::array();
        for (const RemoteTransfer& one : transfers) remotes.push_back(to_json(one, key));
        print(Json{{"cache_dir", context.cache_dir.string()}, {"remotes", remotes}});
    } else {
        print(to_text(context, transfers, column));
    }
    const bool is_wrong = std::ranges::any_of(transfers, [](const RemoteTransfer& one) { return !one.failed.empty(); });
    return is_wrong ? k_found_wrong : k_ok;
}

} // namespace warmgraph::tool
