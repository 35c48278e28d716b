// The remotes in `warmgraph stats`.
#include "verbs/statistics.hpp"

#include <algorithm>

#include "warmgraph/base/process.hpp"
#include "warmgraph/remote/settings.hpp"
#include "warmgraph/remote/uploads.hpp"

namespace warmgraph::tool {

std::vector<RemoteStatistics> remote_statistics(const store::LocalStore& store)
{
    std::vector<RemoteStatistics> remotes;
    for (const auto& [word, total] : remote::totals(store)) remotes.push_back({word, total});
    const auto settings = remote::parse_list(environment("WARMGRAPH_REMOTE").value_or(""), environment);
    if (!settings) return remotes; // `doctor` reports it
    for (const remote::Settings& one : *settings) {
        const std::string word = remote::word_of(one.label);
        auto of = std::ranges::find(remotes, word, &RemoteStatistics::word);
        if (of == remotes.end()) of = remotes.insert(of, {word, {}});
        const auto count = [&](store::RemoteMark mark) {
            const auto names = store.marks(remote::mark_name(one), mark);
            return names ? names->size() : 0;
        };
        of->unsent = of->unsent.value_or(0) + count(store::RemoteMark::unsent); // of all namespaces
        of->refused = of->refused.value_or(0) + count(store::RemoteMark::refused);
    }
    return remotes;
}

Json to_json(const RemoteStatistics& of)
{
    const remote::RemoteTotal& total = of.total;
    return {{"remote", of.word},
            {"hits", total.hits},
            {"misses", total.misses},
            {"puts", total.puts},
            {"bytes_read", total.bytes_read},
            {"bytes_written", total.bytes_written},
            {"bytes_left", total.bytes_left},
            {"read_ms", static_cast<double>(total.read_us) / 1000},
            {"write_ms", static_cast<double>(total.write_us) / 1000},
            {"damaged", total.damaged},
            {"untrusted", total.untrusted},
            {"errors", total.errors},
            {"unsent", of.unsent ? Json(*of.unsent) : Json()},
            {"refused", of.refused ? Json(*of.refused) : Json()}};
}

std::string remotes_text(const Context& context, const std::vector<RemoteStatistics>& remotes)
{
    using enum Table::Align;
    Table table({{"remote"},
                 {"hits", right},
                 {"misses", right},
                 {"read", right},
                 {"left", right},
                 {"time", right},
                 {"sent", right},
                 {"size", right},
                 {"time", right},
                 {"damaged", right},
                 {"untrusted", right},
                 {"failed", right},
                 {"unsent", right}});
    for (const auto& [word, total, unsent, refused] : remotes)
        table.add({word, count_text(total.hits), count_text(total.misses), size_text(total.bytes_read),
                   size_text(total.bytes_left), time_text(static_cast<double>(total.read_us) / 1000),
                   count_text(total.puts), size_text(total.bytes_written),
                   time_text(static_cast<double>(total.write_us) / 1000), count_text(total.damaged),
                   count_text(total.untrusted), count_text(total.errors), unsent ? count_text(*unsent) : "-"});
    return remotes.empty() ? "" : "\n" + table.text(context.style);
}

} // namespace warmgraph::tool
