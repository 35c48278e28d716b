// `warmgraph explain`: why a function would miss here. Two sources tell what "now" is: the facts of the last call that
// missed, which the facade leaves beside the function, and those facts that this process can find out by itself.
#include "commands.hpp"
#include "comparison.hpp"
#include "selection.hpp"
#include "warmgraph/base/printable.hpp"
#include "warmgraph/guards/json.hpp"
#include "warmgraph/store/names.hpp"

namespace warmgraph::tool {

namespace {

enum class Verdict : std::uint8_t { hit, miss, refuse };

struct Explanation {
    cachefmt::FunctionKey key;
    std::size_t variants = 0;
    std::vector<std::pair<Digest, Error>> unusable{};
    std::vector<std::pair<const char*, Comparison>> comparisons{}; ///< "last_miss", "here"
    std::string device_problem{}, last_miss_problem{};
    Verdict verdict = Verdict::hit;
};

const char* name_of(Verdict verdict)
{
    switch (verdict) {
    case Verdict::hit: return "hit";
    case Verdict::miss: return "miss";
    case Verdict::refuse: return "refuse";
    }
    return "";
}

void judge(Explanation& explanation)
{
    if (explanation.comparisons.empty()) explanation.verdict = Verdict::miss; // nothing readable is on disk
    for (const auto& [source, comparison] : explanation.comparisons) {
        if (!comparison.mismatches.empty()) {
            explanation.verdict = Verdict::miss;
            return;
        }
        if (comparison.tombstone) explanation.verdict = Verdict::refuse;
    }
}

Result<Explanation> make(const store::LocalStore& store, const cachefmt::FunctionKey& key,
                         const guards::Relaxation& relaxation)
{
    const auto variants = store.variants(key);
    if (!variants) return std::unexpected(variants.error());
    Explanation explanation{.key = key, .variants = variants->size()};
    std::vector<cachefmt::EntryHeader> headers;
    for (const store::Variant& variant : *variants) {
        if (variant.header)
            headers.push_back(*variant.header);
        else
            explanation.unusable.emplace_back(variant.guards, variant.header.error());
    }
    if (!headers.empty()) {
        if (const std::string text = store.usage(key).last_miss_json; !text.empty()) {
            if (const auto now = guards::from_json(text))
                explanation.comparisons.emplace_back("last_miss", nearest(headers, *now, relaxation));
            else
                explanation.last_miss_problem = now.error().message;
        }
        const LocalFacts local = gather_local_facts(headers);
        explanation.device_problem = local.problem;
        explanation.comparisons.emplace_back("here", nearest_here(headers, local, relaxation));
    }
    judge(explanation);
    return explanation;
}

// --- as JSON

Json to_json(const char* source, const Comparison& comparison)
{
    Json mismatches = Json::array();
    for (const guards::Mismatch& mismatch : comparison.mismatches)
        mismatches.push_back(
            {{"fact", mismatch.fact}, {"recorded", mismatch.recorded}, {"now", mismatch.now}, {"cure", mismatch.cure}});
    Json item{{"against", source},
              {"variant", to_hex(comparison.variant)},
              {"mismatches", mismatches},
              {"agree", comparison.compared - comparison.mismatches.size()}};
    if (comparison.tombstone)
        item["tombstone"] = {{"reason", comparison.tombstone->reason},
                             {"difference", comparison.tombstone->difference}};
    return item;
}

Json to_json(const Explanation& explanation)
{
    Json comparisons = Json::array();
    for (const auto& [source, comparison] : explanation.comparisons) comparisons.push_back(to_json(source, comparison));
    Json unusable = Json::array();
    for (const auto& [digest, error] : explanation.unusable)
        unusable.push_back({{"variant", to_hex(digest)}, {"error", error.message}});
    const auto optional = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
    return {{"model_info", explanation.key.model_info},
            {"rank", explanation.key.rank},
            {"function", explanation.key.function},
            {"would", name_of(explanation.verdict)},
            {"variants", explanation.variants},
            {"comparisons", comparisons},
            {"unusable", unusable},
            {"device_problem", optional(explanation.device_problem)},
            {"last_miss_problem", optional(explanation.last_miss_problem)}};
}

// --- as text

std::string headline(const Context& context, const Explanation& explanation)
{
    const std::string on_disk = plural(explanation.variants, "variant") + " on disk";
    const std::string& function = explanation.key.function;
    switch (explanation.verdict) {
    case Verdict::refuse:
        return context.style.paint(
                   Colour::red,
                   fmt::format("{} would be refused: it was recorded twice with different graphs", function)) +
               "\n";
    case Verdict::hit:
        return context.style.paint(
                   Colour::green, fmt::format("{} would hit, as far as can be seen from here: {}", function, on_disk)) +
               "\n";
    case Verdict::miss: break;
    }
    std::string why = explanation.comparisons.empty() ? "none of them readable" : "";
    for (const auto& [source, comparison] : explanation.comparisons) {
        if (comparison.mismatches.empty()) continue;
        const std::size_t count = comparison.mismatches.size();
        why = fmt::format("{}{} fact{}", explanation.variants > 1 ? "the nearest differs in " : "", count,
                          count == 1 ? "" : "s");
        if (explanation.variants == 1) why += count == 1 ? " differs" : " differ";
        break;
    }
    if (explanation.variants == 0) why = "record it by running it once";
    return context.style.paint(Colour::red, fmt::format("{} would miss: {}, {}", function, on_disk, why)) + "\n";
}

std::string tombstone_text(const cachefmt::FunctionKey& key, const cachefmt::EntryInfo& info)
{
    std::string text = fmt::format("recompiled: {}\n", printable(info.reason));
    for (const std::string& line : info.difference) text += fmt::format("  {}\n", printable(line));
    return text + fmt::format("declare what changed as a guard (Spec::config, Spec::code, Spec::version), then "
                              "`warmgraph clear --func {}/{}`\n",
                              store::model_of(key.model_info), key.function);
}

std::string to_text(const Context& context, const cachefmt::FunctionKey& key, const char* source,
                    const Comparison& comparison)
{
    constexpr std::size_t k_most = 400; // what differs may be at the end of a long value
    const bool last_miss = std::string_view(source) == "last_miss";
    const std::string against = last_miss ? "the last call that missed" : "this machine and environment";
    std::string text = fmt::format("{}, against variant {}:\n", against, short_hex(comparison.variant));
    if (comparison.mismatches.empty()) {
        text += fmt::format("  all {} facts agree\n", comparison.compared);
    } else {
        Table table({{"fact"}, {"recorded"}, {"now"}, {"cure"}}, 2, k_most);
        for (const guards::Mismatch& m : comparison.mismatches) table.add({m.fact, m.recorded, m.now, m.cure});
        text += table.text(context.style);
        const std::size_t agree = comparison.compared - comparison.mismatches.size();
        text += fmt::format("everything else ({} fact{}) agrees\n", agree, agree == 1 ? "" : "s");
    }
    if (comparison.tombstone) text += tombstone_text(key, *comparison.tombstone);
    return text;
}

std::string to_text(const Context& context, const Explanation& explanation)
{
    std::string text = headline(context, explanation);
    for (const auto& [source, comparison] : explanation.comparisons)
        text += to_text(context, explanation.key, source, comparison);
    for (const auto& [digest, error] : explanation.unusable)
        text += fmt::format("variant {} cannot be used: {}\n", short_hex(digest), printable(error.message));
    if (!explanation.device_problem.empty())
        text += fmt::format("device: {}\n", printable(explanation.device_problem, 1000));
    if (!explanation.last_miss_problem.empty())
        text += fmt::format("last miss: {}\n", printable(explanation.last_miss_problem));
    return text;
}

} // namespace

Result<int> explain(const Context& context, const std::string& target, const guards::Relaxation& relaxation)
{
    const auto store = open_store(context);
    if (!store) return std::unexpected(store.error());
    const auto key = select(context, store->get(), target);
    if (!key) return std::unexpected(key.error());
    const auto explanation = make(**store, *key, relaxation);
    if (!explanation) return std::unexpected(explanation.error());
    if (context.output == Output::json)
        print(to_json(*explanation));
    else
        print(to_text(context, *explanation));
    return explanation->verdict == Verdict::hit ? k_ok : k_found_wrong;
}

} // namespace warmgraph::tool
