// `warmgraph stats`: what the cache did for each function, over all processes.
#include "commands.hpp"
#include "selection.hpp"
#include "warmgraph/store/names.hpp"

namespace warmgraph::tool {

namespace {

struct Row {
    cachefmt::FunctionKey key;
    store::FunctionUsage usage;
};

std::string rate_text(const store::FunctionUsage& usage)
{
    const std::uint64_t lookups = usage.hits + usage.misses;
    return lookups == 0
               ? "-"
               : fmt::format("{:.0f} %", 100.0 * static_cast<double>(usage.hits) / static_cast<double>(lookups));
}

Json to_json(const store::FunctionUsage& usage)
{
    return {{"hits", usage.hits},
            {"misses", usage.misses},
            {"recordings", usage.recordings},
            {"refusals", usage.refusals},
            {"saved_ms", usage.saved_ms}};
}

Json to_json(const Context& context, const std::vector<Row>& rows, const store::FunctionUsage& total)
{
    Json functions = Json::array();
    for (const Row& row : rows) {
        Json item{{"model_info", row.key.model_info}, {"rank", row.key.rank}, {"function", row.key.function}};
        item.update(to_json(row.usage));
        item["last_used"] = row.usage.last_used.empty() ? Json() : Json(row.usage.last_used);
        functions.push_back(std::move(item));
    }
    return {{"cache_dir", context.cache_dir.string()}, {"functions", functions}, {"total", to_json(total)}};
}

std::string to_text(const Context& context, const std::vector<Row>& rows, const store::FunctionUsage& total)
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
    for (const auto& [key, usage] : rows)
        table.add({std::string(store::model_of(key.model_info)), key.rank, key.function, count_text(usage.hits),
                   count_text(usage.misses), rate_text(usage), count_text(usage.recordings), count_text(usage.refusals),
                   time_text(usage.saved_ms)});
    const std::string footer = fmt::format("{}, {} misses, {} saved\n", plural(total.hits, "hit"),
                                           count_text(total.misses), time_text(total.saved_ms));
    return rows.empty() ? footer : table.text(context.style) + footer;
}

} // namespace

Result<int> stats(const Context& context)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto functions = *store ? (*store)->functions() : std::vector<cachefmt::FunctionKey>{};
    if (!functions) return std::unexpected(functions.error());
    std::vector<Row> rows;
    store::FunctionUsage total;
    for (const cachefmt::FunctionKey& key : *functions) {
        rows.push_back({key, (*store)->usage(key)});
        const store::FunctionUsage& usage = rows.back().usage;
        total.hits += usage.hits;
        total.misses += usage.misses;
        total.recordings += usage.recordings;
        total.refusals += usage.refusals;
        total.saved_ms += usage.saved_ms;
    }
    if (context.output == Output::json)
        print(to_json(context, rows, total));
    else
        print(*store ? to_text(context, rows, total) : no_folder_text(context) + "\n");
    return k_ok;
}

} // namespace warmgraph::tool
