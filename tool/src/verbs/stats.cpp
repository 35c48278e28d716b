// `warmgraph stats`: hits, misses and savings of each function and kind, over all processes.
#include <algorithm>

#include "commands.hpp"
#include "miss_json.hpp"
#include "selection.hpp"
#include "verbs/statistics.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::tool {

namespace {

std::string rate_text(const store::FunctionUsage& usage)
{
    const std::uint64_t lookups = usage.hits + usage.misses;
    return lookups == 0
               ? "-"
               : fmt::format("{:.0f} %", 100.0 * static_cast<double>(usage.hits) / static_cast<double>(lookups));
}

Json to_json(const store::FunctionUsage& usage)
{
    Json events = Json::array();
    for (const auto& [what, tally] : usage.events.all())
        events.push_back(
            {{"kind", to_string(what.first)}, {"reason", what.second}, {"count", tally.count}, {"bytes", tally.bytes}});
    return {{"hits", usage.hits},         {"misses", usage.misses},     {"recordings", usage.recordings},
            {"refusals", usage.refusals}, {"saved_ms", usage.saved_ms}, {"events", events}};
}

Json to_json(const KindStatistics& of)
{
    Json json = to_json(of.usage);
    json["files"] = of.held.files;
    json["bytes"] = of.held.bytes;
    return json;
}

Json to_json(const Context& context, const FolderStatistics& statistics, const store::FunctionUsage& total)
{
    Json kinds = Json::object();
    for (const KindStatistics& of : statistics.kinds) kinds[std::string(to_string(of.kind))] = to_json(of);
    Json remotes = Json::array();
    for (const RemoteStatistics& of : statistics.remotes) remotes.push_back(to_json(of));
    Json functions = Json::array();
    for (const auto& [key, usage, variants, bytes, refusal] : statistics.functions) {
        Json item{{"model", cachefmt::model_of(key.model_info)},
                  {"model_info", key.model_info},
                  {"rank", key.rank},
                  {"function", key.function}};
        item.update(to_json(usage));
        item["refusal"] = refusal.empty() ? Json() : Json(refusal);
        item["last_used"] = usage.last_used.empty() ? Json() : Json(usage.last_used);
        functions.push_back(std::move(item));
    }
    return {{"cache_dir", context.cache_dir.string()},
            {"functions", functions},
            {"total", to_json(total)},
            {"kinds", kinds},
            {"remotes", remotes}};
}

std::string functions_text(const Context& context, const std::vector<FunctionStatistics>& functions)
{
    using enum Table::Align;
    Table table({{"model"},
                 {"rank"},
                 {"function"},
                 {"hits", right},
                 {"misses", right},
                 {"hit rate", right},
                 {"recorded", right},
                 {"refused", right},
                 {"saved", right}});
    for (const auto& [key, usage, variants, bytes, refusal] : functions)
        table.add({std::string(cachefmt::model_of(key.model_info)), key.rank, key.function, count_text(usage.hits),
                   count_text(usage.misses), rate_text(usage), count_text(usage.recordings), count_text(usage.refusals),
                   time_text(usage.saved_ms)});
    return functions.empty() ? "" : table.text(context.style);
}

/// Says why functions ran uncached at their last miss, with the cure.
std::string refusals_text(const std::vector<FunctionStatistics>& functions)
{
    std::string text;
    for (const FunctionStatistics& function : functions)
        if (!function.refusal.empty())
            text += fmt::format("{} runs as it is ({}): {}\n", function.key.function, refused_text(function.usage),
                                printable(function.refusal, 1000));
    return text;
}

std::string events_text(const Context& context, const store::Events& events)
{
    using enum Table::Align;
    Table table({{"what"}, {"reason"}, {"count", right}, {"bytes", right}});
    for (const auto& [what, tally] : events.all())
        table.add({std::string(to_string(what.first)), what.second, count_text(tally.count),
                   tally.bytes == 0 ? "-" : size_text(tally.bytes)});
    return events.all().empty() ? "" : "\n" + table.text(context.style);
}

bool is_of_interest(const KindStatistics& of)
{
    return of.held.files != 0 || of.usage.hits != 0 || of.usage.misses != 0;
}

/// The kinds that the folder has or has counted.
std::string kinds_text(const Context& context, const std::vector<KindStatistics>& kinds)
{
    using enum Table::Align;
    Table table({{"kind"},
                 {"files", right},
                 {"size", right},
                 {"hits", right},
                 {"misses", right},
                 {"hit rate", right},
                 {"saved", right}});
    for (const KindStatistics& of : kinds)
        if (is_of_interest(of))
            table.add({std::string(to_string(of.kind)), count_text(of.held.files), size_text(of.held.bytes),
                       count_text(of.usage.hits), count_text(of.usage.misses), rate_text(of.usage),
                       time_text(of.usage.saved_ms)});
    return std::ranges::any_of(kinds, is_of_interest) ? "\n" + table.text(context.style) : "";
}

std::string to_text(const Context& context, const FolderStatistics& statistics, const store::FunctionUsage& total)
{
    return functions_text(context, statistics.functions) +
           fmt::format("{}, {}, {} saved\n", plural(total.hits, "hit"), plural(total.misses, "miss"),
                       time_text(total.saved_ms)) +
           refusals_text(statistics.functions) + kinds_text(context, statistics.kinds) +
           remotes_text(context, statistics.remotes) + events_text(context, total.events);
}

store::FunctionUsage total_of(const std::vector<FunctionStatistics>& functions)
{
    store::FunctionUsage total;
    for (const FunctionStatistics& function : functions) {
        total.hits += function.usage.hits;
        total.misses += function.usage.misses;
        total.recordings += function.usage.recordings;
        total.refusals += function.usage.refusals;
        total.saved_ms += function.usage.saved_ms;
        total.events.merge(function.usage.events);
    }
    return total;
}

Result<FolderStatistics> gather(const store::LocalStore& store, const std::vector<cachefmt::FunctionKey>& functions)
{
    FolderStatistics statistics;
    for (const cachefmt::FunctionKey& key : functions) {
        const auto variants = store.variants(key);
        if (!variants) return std::unexpected(variants.error());
        auto& function = statistics.functions.emplace_back(FunctionStatistics{key, store.usage(key)});
        function.variants = variants->size();
        if (const auto misses = store.misses(key))
            if (const store::Miss* const refused = refused_last(*misses)) function.refusal = refused->reason;
        for (const store::Variant& variant : *variants) function.entry_bytes += variant.size;
    }
    const auto images = store.images();
    if (!images) return std::unexpected(images.error());
    statistics.images = images->size();
    for (const auto& [digest, size] : *images) statistics.image_bytes += size;
    const auto held = store.held();
    if (!held) return std::unexpected(held.error());
    for (const auto& [kind, amount] : *held)
        statistics.kinds.push_back(
            {kind, amount, kind == store::ArtifactKind::entries ? total_of(statistics.functions) : store.usage(kind)});
    statistics.remotes = remote_statistics(store);
    return statistics;
}

} // namespace

Result<int> stats(const Context& context, const std::optional<std::string>& name, StatsForm form)
{
    if (form == StatsForm::prometheus && context.output == Output::json)
        return fail(ErrorCode::invalid_argument, "--prometheus and --json are two output formats: leave one out");
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto functions = choose(context, store->get(), name);
    if (!functions) return std::unexpected(functions.error());
    const auto statistics = *store ? gather(**store, *functions) : FolderStatistics{};
    if (!statistics) return std::unexpected(statistics.error());
    const store::FunctionUsage total = total_of(statistics->functions);
    if (form == StatsForm::prometheus)
        print(prometheus_text(*statistics));
    else if (context.output == Output::json)
        print(to_json(context, *statistics, total));
    else
        print(*store ? to_text(context, *statistics, total) : no_folder_text(context) + "\n");
    return k_ok;
}

} // namespace warmgraph::tool
