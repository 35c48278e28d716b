// `warmgraph ls`: prints one line for each function.
#include <algorithm>
#include <set>

#include "commands.hpp"
#include "miss_json.hpp"
#include "selection.hpp"
#include "verbs/environment.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::tool {

namespace {

struct Row {
    cachefmt::FunctionKey key;
    std::uint64_t variants = 0, damaged = 0, untrusted = 0, tombstones = 0, size = 0;
    std::uint32_t nodes = 0, images = 0; ///< numbers of the variant that was used last
    std::chrono::system_clock::time_point last_used{};
    store::FunctionUsage usage{};
};

Result<Row> row_of(const store::LocalStore& store, const cachefmt::FunctionKey& key, Environments& environments)
{
    const auto variants = store.variants(key);
    if (!variants) return std::unexpected(variants.error());
    Row row{.key = key};
    row.usage = store.usage(key);
    std::set<cachefmt::RecordingId> recordings; // a pair's forward and backward count as one variant
    for (const store::Variant& variant : *variants) {
        const auto recording = variant.header ? variant.header->recording : std::nullopt;
        if (!recording || recordings.insert(recording->id).second) ++row.variants;
        row.size += variant.size;
        if (variant.header) environments.add(variant.header->guards);
        if (!variant.header)
            ++(variant.header.error().code == ErrorCode::untrusted ? row.untrusted : row.damaged);
        else if (variant.header->kind == cachefmt::EntryKind::tombstone)
            ++row.tombstones;
        const bool newest = variant.last_used >= row.last_used;
        row.last_used = std::max(row.last_used, variant.last_used);
        if (newest && variant.header) {
            row.nodes = variant.header->info.node_count;
            row.images = variant.header->info.image_count;
        }
    }
    return row;
}

std::string variants_text(const Row& row)
{
    std::string text = count_text(row.variants);
    if (row.tombstones > 0) text += fmt::format(" ({} recompiled)", row.tombstones);
    if (row.damaged > 0) text += fmt::format(" ({} damaged)", row.damaged);
    if (row.untrusted > 0) text += fmt::format(" ({} untrusted)", row.untrusted);
    return text;
}

struct Totals {
    std::uint64_t variants = 0, entry_bytes = 0, images = 0, image_bytes = 0, compiled = 0, compiled_bytes = 0;
    bool is_all = true; ///< false: a name was given, so images and compiled programs are not counted
    Environments environments{};
};

Json to_json(const Context& context, const std::vector<Row>& rows, const Totals& totals, ThisMachine& machine)
{
    Json functions = Json::array();
    for (const Row& row : rows)
        functions.push_back({{"model", cachefmt::model_of(row.key.model_info)},
                             {"model_info", row.key.model_info},
                             {"rank", row.key.rank},
                             {"function", row.key.function},
                             {"variants", row.variants},
                             {"recompiled", row.tombstones},
                             {"damaged", row.damaged},
                             {"untrusted", row.untrusted},
                             {"nodes", row.nodes},
                             {"images", row.images},
                             {"bytes", row.size},
                             {"last_used", row.variants > 0 ? Json(to_iso8601(row.last_used)) : Json()},
                             {"hits", row.usage.hits},
                             {"refusals", row.usage.refusals},
                             {"runs_as_it_is", refused_text(row.usage)}});
    Json document{{"cache_dir", context.cache_dir.string()},
                  {"environments", tool::to_json(totals.environments.judge(machine))},
                  {"functions", functions},
                  {"variants", totals.variants},
                  {"entry_bytes", totals.entry_bytes}};
    if (totals.is_all)
        document.update({{"images", totals.images},
                         {"image_bytes", totals.image_bytes},
                         {"compiled", totals.compiled},
                         {"compiled_bytes", totals.compiled_bytes}});
    return document;
}

std::string to_text(const Context& context, const std::vector<Row>& rows, const Totals& totals, ThisMachine& machine)
{
    using enum Table::Align;
    Table table({{"model"},
                 {"rank"},
                 {"function"},
                 {"variants"},
                 {"nodes", right},
                 {"images", right},
                 {"size", right},
                 {"last used"},
                 {"hits", right},
                 {"runs as it is"}});
    for (const Row& row : rows)
        table.add({std::string(cachefmt::model_of(row.key.model_info)), row.key.rank, row.key.function,
                   variants_text(row), count_text(row.nodes), count_text(row.images), size_text(row.size),
                   row.variants > 0 ? ago_text(row.last_used, context.clock.wall()) : "never",
                   count_text(row.usage.hits), row.usage.refusals > 0 ? refused_text(row.usage) : "-"});
    std::string footer = fmt::format("{}, {} ({})", plural(rows.size(), "function"), plural(totals.variants, "variant"),
                                     size_text(totals.entry_bytes));
    if (totals.is_all)
        footer += fmt::format(", {} ({})", plural(totals.images, "image"), size_text(totals.image_bytes));
    if (totals.compiled > 0)
        footer +=
            fmt::format(", {} ({})", plural(totals.compiled, "compiled program"), size_text(totals.compiled_bytes));
    const std::string environment = environment_line(totals.environments.judge(machine));
    return (environment.empty() ? "" : environment + "\n") + (rows.empty() ? "" : table.text(context.style)) + footer +
           "\n";
}

Result<void> gather(const store::LocalStore& store, const std::vector<cachefmt::FunctionKey>& functions,
                    std::vector<Row>& rows, Totals& totals)
{
    for (const cachefmt::FunctionKey& key : functions) {
        auto row = row_of(store, key, totals.environments);
        if (!row) return std::unexpected(row.error());
        totals.variants += row->variants;
        totals.entry_bytes += row->size;
        rows.push_back(std::move(*row));
    }
    if (!totals.is_all) return {};
    const auto images = store.images();
    if (!images) return std::unexpected(images.error());
    totals.images = images->size();
    for (const auto& [digest, size] : *images) totals.image_bytes += size;
    const auto held = store.held();
    if (!held) return std::unexpected(held.error());
    totals.compiled = held->at(store::ArtifactKind::compiled).files;
    totals.compiled_bytes = held->at(store::ArtifactKind::compiled).bytes;
    return {};
}

} // namespace

Result<int> ls(const Context& context, const std::optional<std::string>& name)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto functions = choose(context, store->get(), name);
    if (!functions) return std::unexpected(functions.error());
    std::vector<Row> rows;
    Totals totals{.is_all = !name};
    if (*store)
        if (const auto done = gather(**store, *functions, rows, totals); !done) return std::unexpected(done.error());
    ThisMachine machine;
    if (context.output == Output::json)
        print(to_json(context, rows, totals, machine));
    else
        print(*store ? to_text(context, rows, totals, machine) : no_folder_text(context) + "\n");
    return k_ok;
}

} // namespace warmgraph::tool
