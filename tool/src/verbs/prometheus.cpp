// `warmgraph stats --prometheus`, in this format: https://prometheus.io/docs/instrumenting/exposition_formats/
#include <fmt/format.h>

#include "verbs/statistics.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::tool {

namespace {

/// Escapes backslash, quote and line end for a label's value. Characters that are not printable ASCII become '?'.
std::string escaped(std::string_view text)
{
    std::string out;
    for (const char c : text) {
        if (c == '\\' || c == '"') out += '\\';
        if (c == '\n')
            out += "\\n";
        else
            out += c >= ' ' && c <= '~' ? c : '?';
    }
    return out;
}

std::string labels_of(const FunctionStatistics& function)
{
    const cachefmt::FunctionKey& key = function.key;
    return fmt::format(R"(model="{}",model_info="{}",rank="{}",function="{}")",
                       escaped(cachefmt::model_of(key.model_info)), escaped(key.model_info), escaped(key.rank),
                       escaped(key.function));
}

std::string labels_of(const KindStatistics& of) { return fmt::format("kind=\"{}\"", to_string(of.kind)); }
std::string labels_of(const RemoteStatistics& of) { return fmt::format("remote=\"{}\"", escaped(of.word)); }

std::string head_of(const char* name, const char* type, const char* help)
{
    return fmt::format("# HELP {0} {2}\n# TYPE {0} {1}\n", name, type, help);
}

/// A metric family with one sample for each function or kind.
template <class Of, class Value>
std::string family(const std::vector<Of>& all, const char* name, const char* type, const char* help, Value value)
{
    std::string text = head_of(name, type, help);
    for (const Of& one : all) text += fmt::format("{}{{{}}} {}\n", name, labels_of(one), value(one));
    return text;
}

/// A metric family with one sample for each function, kind and reason.
std::string event_family(const FolderStatistics& statistics, const char* name, const char* help,
                         std::uint64_t store::Tally::* value)
{
    std::string text = head_of(name, "counter", help);
    for (const FunctionStatistics& function : statistics.functions)
        for (const auto& [what, tally] : function.usage.events.all())
            text += fmt::format("{}{{{},kind=\"{}\",reason=\"{}\"}} {}\n", name, labels_of(function),
                                to_string(what.first), escaped(what.second), tally.*value);
    return text;
}

std::string sample(const char* name, const char* help, std::uint64_t value)
{
    return head_of(name, "gauge", help) + fmt::format("{} {}\n", name, value);
}

/// The events of all kinds but entries, which are counted by function.
std::string kind_events(const FolderStatistics& statistics)
{
    constexpr const char* k_name = "warmgraph_kind_events_total";
    std::string text =
        head_of(k_name, "counter", "Events of programs, configurations and profiles, by event and reason.");
    for (const KindStatistics& of : statistics.kinds) {
        if (of.kind == store::ArtifactKind::entries) continue;
        for (const auto& [what, tally] : of.usage.events.all())
            text += fmt::format("{}{{{},event=\"{}\",reason=\"{}\"}} {}\n", k_name, labels_of(of),
                                to_string(what.first), escaped(what.second), tally.count);
    }
    return text;
}

std::string kinds_text(const FolderStatistics& statistics)
{
    using Of = KindStatistics;
    const auto& kinds = statistics.kinds;
    return family(kinds, "warmgraph_kind_files", "gauge", "Files in the folder, by kind.",
                  [](const Of& of) { return of.held.files; }) +
           family(kinds, "warmgraph_kind_bytes", "gauge", "Bytes in the folder, by kind.",
                  [](const Of& of) { return of.held.bytes; }) +
           family(kinds, "warmgraph_kind_hits_total", "counter", "Artifacts that were found and used, by kind.",
                  [](const Of& of) { return of.usage.hits; }) +
           family(kinds, "warmgraph_kind_misses_total", "counter",
                  "Artifacts that did not exist or did not fit, by kind.",
                  [](const Of& of) { return of.usage.misses; }) +
           family(kinds, "warmgraph_kind_saved_seconds_total", "counter",
                  "Time that starts would have taken longer without the kind.",
                  [](const Of& of) { return of.usage.saved_ms / 1000; }) +
           kind_events(statistics);
}

std::string remotes_text(const std::vector<RemoteStatistics>& remotes)
{
    if (remotes.empty()) return {};
    const auto counter = [&](const char* name, const char* help, std::uint64_t remote::RemoteTotal::* value) {
        return family(remotes, name, "counter", help, [value](const RemoteStatistics& of) { return of.total.*value; });
    };
    using Total = remote::RemoteTotal;
    return counter("warmgraph_remote_hits_total", "Look-ups that a remote answered.", &Total::hits) +
           counter("warmgraph_remote_misses_total", "Look-ups that a remote had nothing for.", &Total::misses) +
           counter("warmgraph_remote_puts_total", "Objects that were sent.", &Total::puts) +
           counter("warmgraph_remote_read_bytes_total", "Bytes that were read.", &Total::bytes_read) +
           counter("warmgraph_remote_written_bytes_total", "Bytes that were sent.", &Total::bytes_written) +
           counter("warmgraph_remote_left_bytes_total", "Bytes that were not read, because a header sufficed.",
                   &Total::bytes_left) +
           family(remotes, "warmgraph_remote_read_seconds_total", "counter", "Time of reading.",
                  [](const RemoteStatistics& of) { return static_cast<double>(of.total.read_us) / 1e6; }) +
           family(remotes, "warmgraph_remote_write_seconds_total", "counter", "Time of sending.",
                  [](const RemoteStatistics& of) { return static_cast<double>(of.total.write_us) / 1e6; }) +
           counter("warmgraph_remote_damaged_total", "Damaged objects that were refused.", &Total::damaged) +
           counter("warmgraph_remote_untrusted_total", "Objects without an accepted signature.", &Total::untrusted) +
           counter("warmgraph_remote_errors_total", "Calls that failed.", &Total::errors);
}

} // namespace

std::string prometheus_text(const FolderStatistics& statistics)
{
    using Function = FunctionStatistics;
    const auto counter = [&](const char* name, const char* help, auto value) {
        return family(statistics.functions, name, "counter", help, value);
    };
    const auto gauge = [&](const char* name, const char* help, auto value) {
        return family(statistics.functions, name, "gauge", help, value);
    };
    return counter("warmgraph_hits_total", "Entries that were restored and used.",
                   [](const Function& f) { return f.usage.hits; }) +
           counter("warmgraph_misses_total", "Calls for which no entry fits.",
                   [](const Function& f) { return f.usage.misses; }) +
           counter("warmgraph_recordings_total", "Entries that were recorded and published.",
                   [](const Function& f) { return f.usage.recordings; }) +
           counter("warmgraph_refusals_total", "Calls that could not be recorded or must not be replayed.",
                   [](const Function& f) { return f.usage.refusals; }) +
           counter("warmgraph_saved_seconds_total", "Time that first calls would have taken longer without the cache.",
                   [](const Function& f) { return f.usage.saved_ms / 1000; }) +
           event_family(statistics, "warmgraph_events_total", "Events of entries, by kind and reason.",
                        &store::Tally::count) +
           event_family(statistics, "warmgraph_event_bytes_total", "Bytes of the events, by kind and reason.",
                        &store::Tally::bytes) +
           gauge("warmgraph_variants", "Entries on disk.", [](const Function& f) { return f.variants; }) +
           gauge("warmgraph_entry_bytes", "Bytes of entries on disk.",
                 [](const Function& f) { return f.entry_bytes; }) +
           sample("warmgraph_images", "Images of device code in the folder.", statistics.images) +
           sample("warmgraph_image_bytes", "Bytes of images of device code in the folder.", statistics.image_bytes) +
           kinds_text(statistics) + remotes_text(statistics.remotes);
}

} // namespace warmgraph::tool
