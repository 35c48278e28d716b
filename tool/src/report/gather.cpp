#include "report/gather.hpp"

#include <algorithm>

#include "miss_json.hpp"
#include "report/variant_json.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::tool {

namespace {

struct Totals {
    std::uint64_t variants = 0, recompiled = 0, damaged = 0, entry_bytes = 0;
    store::FunctionUsage usage;
};

Json to_json(const store::PhaseTimes& times)
{
    Json list = Json::array();
    for (const auto& [phase, milliseconds] : times) list.push_back({{"phase", phase}, {"ms", milliseconds}});
    return list;
}

Json to_json(const store::FunctionUsage& usage)
{
    return {{"hits", usage.hits},
            {"misses", usage.misses},
            {"recordings", usage.recordings},
            {"refusals", usage.refusals},
            {"saved_ms", usage.saved_ms}};
}

/// Adds a variant to the totals. `variant` is its JSON in the document; REQUIRES: its payload was read.
void add(Totals& totals, const Json& variant)
{
    ++totals.variants;
    totals.entry_bytes += variant["bytes"].get<std::uint64_t>();
    if (variant["kind"] == "damaged") ++totals.damaged;
    if (variant["kind"] == "recompiled") ++totals.recompiled;
}

void add(Totals& totals, const store::FunctionUsage& usage)
{
    totals.usage.hits += usage.hits;
    totals.usage.misses += usage.misses;
    totals.usage.recordings += usage.recordings;
    totals.usage.refusals += usage.refusals;
    totals.usage.saved_ms += usage.saved_ms;
}

Json name_of(const cachefmt::FunctionKey& key)
{
    return {{"model", cachefmt::model_of(key.model_info)},
            {"model_info", key.model_info},
            {"rank", key.rank},
            {"function", key.function}};
}

class ReportGatherer {
public:
    ReportGatherer(const Context& context, const store::LocalStore& store, const DrawingLimits& limits)
        : m_store(store), m_variants(context, store.root(), limits)
    {
    }

    Result<Json> function(const cachefmt::FunctionKey& key)
    {
        auto variants = m_store.variants(key);
        if (!variants) return std::unexpected(variants.error());
        std::ranges::stable_sort(*variants, std::ranges::greater{}, &store::Variant::last_used);
        const store::FunctionUsage usage = m_store.usage(key);
        add(totals, usage);

        Json out = name_of(key);
        out.update(to_json(usage));
        out["bytes"] = 0;
        out["last_used"] = variants->empty() ? Json() : Json(to_iso8601(variants->front().last_used));
        out["start"] = {{"cold", to_json(usage.cold)}, {"warm", to_json(usage.warm)}};
        const auto misses = m_store.misses(key);
        out["runs_as_it_is"] = refused_text(usage);
        out["last_misses"] = misses ? misses_json(misses->list) : Json::array();
        out["misses_problem"] = misses ? Json() : Json(misses.error().message);
        out["variants"] = Json::array();
        std::uint64_t bytes = 0;
        for (const store::Variant& variant : *variants) {
            bytes += variant.size;
            out["variants"].push_back(m_variants.json(key, variant));
            add(totals, out["variants"].back());
        }
        out["bytes"] = bytes;
        return out;
    }

    Totals totals;

private:
    const store::LocalStore& m_store;
    VariantJson m_variants;
};

Json header_of(const Context& context)
{
    return {{"warmgraph", WARMGRAPH_VERSION},
            {"created", to_iso8601(context.clock.wall())},
            {"cache_dir", context.cache_dir.string()}};
}

Json to_json(const Totals& totals, std::size_t functions, const std::vector<std::pair<Digest, std::uint64_t>>& images)
{
    std::uint64_t image_bytes = 0;
    for (const auto& [digest, size] : images) image_bytes += size;
    Json out{{"functions", functions},    {"variants", totals.variants},       {"recompiled", totals.recompiled},
             {"damaged", totals.damaged}, {"entry_bytes", totals.entry_bytes}, {"images", images.size()},
             {"image_bytes", image_bytes}};
    out.update(to_json(totals.usage));
    return out;
}

} // namespace

Result<Json> gather_report(const Context& context, const store::LocalStore* store, const DrawingLimits& limits)
{
    Json document = header_of(context);
    document["totals"] = to_json(Totals{}, 0, {});
    document["functions"] = Json::array();
    if (store == nullptr) return document;

    const auto keys = store->functions();
    if (!keys) return std::unexpected(keys.error());
    const auto images = store->images();
    if (!images) return std::unexpected(images.error());
    ReportGatherer gathering{context, *store, limits};
    for (const cachefmt::FunctionKey& key : *keys) {
        auto function = gathering.function(key);
        if (!function) return std::unexpected(function.error());
        document["functions"].push_back(std::move(*function));
    }
    document["totals"] = to_json(gathering.totals, keys->size(), *images);
    return document;
}

} // namespace warmgraph::tool
