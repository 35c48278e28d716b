#include "verbs/explanation.hpp"

#include <algorithm>

#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/guards/json.hpp"

namespace warmgraph::tool {

namespace {

using cachefmt::EntryHeader;
using cachefmt::Fact;

void judge(Explanation& explanation)
{
    if (explanation.comparisons.empty()) explanation.verdict = CallVerdict::miss; // no readable entry on disk
    for (const auto& [source, comparison] : explanation.comparisons) {
        if (!comparison.mismatches.empty()) {
            explanation.verdict = CallVerdict::miss;
            return;
        }
        if (comparison.tombstone) explanation.verdict = CallVerdict::refuse;
    }
}

/// The readable headers, the most recently used first.
Result<std::vector<EntryHeader>> readable_headers(const store::LocalStore& store, Explanation& explanation)
{
    auto variants = store.variants(explanation.key);
    if (!variants) return std::unexpected(variants.error());
    explanation.variants = variants->size();
    std::ranges::stable_sort(*variants, std::ranges::greater{}, &store::Variant::last_used);
    std::vector<EntryHeader> headers;
    for (store::Variant& variant : *variants) {
        if (variant.header)
            headers.push_back(*variant.header);
        else
            explanation.unusable.emplace_back(variant.guards_digest, variant.header.error());
    }
    return headers;
}

/// The guards of the last missed call; nullopt when not known.
std::optional<cachefmt::Guards> read_misses(const store::LocalStore& store, Explanation& explanation)
{
    auto misses = store.misses(explanation.key);
    if (!misses) {
        explanation.last_miss_problem = misses.error().message;
        return std::nullopt;
    }
    explanation.misses = std::move(*misses);
    if (explanation.misses.newest_call.empty()) return std::nullopt;
    auto call = guards::from_json(explanation.misses.newest_call);
    if (call) return std::move(*call);
    explanation.last_miss_problem = call.error().message;
    return std::nullopt;
}

/// The facts in the folders' names: the model's configuration, the backend, the rank.
cachefmt::Guards name_facts(const cachefmt::Guards& guards)
{
    cachefmt::Guards part;
    std::ranges::copy_if(guards.facts, std::back_inserter(part.facts), [](const Fact& fact) {
        return fact.name.starts_with("config.model.") || fact.name == cachefmt::fact::k_rank ||
               fact.name == cachefmt::fact::k_backend;
    });
    return part;
}

std::vector<SiblingFunction> find_elsewhere(const store::LocalStore& store, const cachefmt::FunctionKey& key,
                                            const std::optional<cachefmt::Guards>& here)
{
    std::vector<SiblingFunction> found;
    const auto functions = store.functions();
    for (const cachefmt::FunctionKey& other : functions ? *functions : std::vector<cachefmt::FunctionKey>{}) {
        const bool is_kin = other != key && other.function == key.function &&
                            cachefmt::model_of(other.model_info) == cachefmt::model_of(key.model_info);
        const auto variants = is_kin ? store.variants(other) : std::vector<store::Variant>{};
        if (!variants || variants->empty()) continue;
        SiblingFunction& item = found.emplace_back(SiblingFunction{other, variants->size()});
        const auto readable =
            std::ranges::find_if(*variants, [](const auto& each) { return static_cast<bool>(each.header); });
        if (here && readable != variants->end())
            item.differences = guards::evaluate(name_facts(readable->header->guards), name_facts(*here));
    }
    return found;
}

} // namespace

const char* name_of(CallVerdict verdict) noexcept
{
    switch (verdict) {
    case CallVerdict::hit: return "hit";
    case CallVerdict::miss: return "miss";
    case CallVerdict::refuse: return "refuse";
    }
    return "";
}

Result<Explanation> make_explanation(const store::LocalStore& store, const cachefmt::FunctionKey& key,
                                     const guards::Relaxation& relaxation)
{
    Explanation explanation{.key = key};
    const auto headers = readable_headers(store, explanation);
    if (!headers) return std::unexpected(headers.error());
    auto call = read_misses(store, explanation);
    if (!headers->empty()) {
        if (call) explanation.comparisons.emplace_back("last_miss", nearest(*headers, *call, relaxation));
        const LocalFacts local = gather_local_facts(*headers);
        explanation.device_problem = local.problem;
        explanation.binary_problems = local.missing_binaries;
        explanation.comparisons.emplace_back("here", nearest_here(*headers, local, relaxation));
    }
    judge(explanation);
    if (!call && !headers->empty()) call = headers->front().guards;
    explanation.elsewhere = find_elsewhere(store, key, call);
    return explanation;
}

std::optional<cachefmt::FunctionKey> missed_last(const store::LocalStore& store,
                                                 const std::vector<cachefmt::FunctionKey>& functions)
{
    std::optional<cachefmt::FunctionKey> last;
    std::string newest;
    for (const cachefmt::FunctionKey& key : functions) {
        const auto misses = store.misses(key);
        if (!misses || misses->list.empty() || misses->list.front().time <= newest) continue;
        newest = misses->list.front().time; // ISO 8601 sorts as text
        last = key;
    }
    return last;
}

} // namespace warmgraph::tool
