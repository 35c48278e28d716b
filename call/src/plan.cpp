#include "warmgraph/call/plan.hpp"

#include <cstring>

#include "warmgraph/base/error.hpp"
#include "warmgraph/base/units.hpp"
#include "warmgraph/store/settings.hpp"

namespace warmgraph {

namespace {

using Action = Plan::Action;

MissAnalysis judged(const Situation& situation, const cachefmt::EntryHeader& header)
{
    MissAnalysis analysis{1, header.key.guards_digest,
                          guards::evaluate(header.guards, situation.now, situation.relaxation)};
    analysis.agree = guards::compared_count(header.guards, situation.now) - analysis.differences.size();
    return analysis;
}

MissAnalysis recompiled(const Situation& situation, const cachefmt::EntryHeader& header)
{
    auto analysis = judged(situation, header);
    analysis.word = "recompiled";
    return analysis;
}

MissAnalysis because(std::string word)
{
    MissAnalysis analysis;
    analysis.word = std::move(word);
    return analysis;
}

/// Returns the reason in statistics for a fact that differs. All facts of one kind that users name (variables, inputs)
/// have one word.
std::string word_of(const std::string& fact)
{
    for (const char* kind : {"config.", "env.", "program."})
        if (fact.starts_with(kind)) return std::string(kind, std::strlen(kind) - 1);
    for (const char* kind : {"input", "value"})
        if (fact.starts_with(kind)) return kind;
    return fact;
}

Plan tombstoned(const Situation& situation, const cachefmt::EntryHeader& header)
{
    return {Action::refuse,
            {},
            fmt::format("it was recorded twice under the same guards with different graphs ({}): {}; give what changed "
                        "as a guard (Spec::config, Spec::code or Spec::version), then `warmgraph clear --func {}`",
                        header.info.reason, fmt::join(header.info.difference, "; "), situation.function),
            true,
            recompiled(situation, header)};
}

/// Finds and judges the variant that is nearest to the call.
MissAnalysis judge(const Situation& situation, const std::vector<store::Variant>& variants)
{
    MissAnalysis nearest;
    std::chrono::system_clock::time_point last_used{};
    std::uint64_t readable = 0;
    for (const auto& variant : variants) {
        if (!variant.header) continue;
        ++readable;
        auto analysis = judged(situation, *variant.header);
        const auto fewer = analysis.differences.size() <=> nearest.differences.size();
        if (nearest.nearest && (fewer > 0 || (fewer == 0 && variant.last_used <= last_used))) continue;
        nearest = std::move(analysis);
        last_used = variant.last_used;
    }
    nearest.variants = readable;
    if (!nearest.differences.empty()) nearest.word = word_of(nearest.differences.front().fact);
    if (!nearest.nearest) nearest.word = variants.empty() ? "no_entry" : "unreadable";
    return nearest;
}

std::string explain(const MissAnalysis& analysis, const std::vector<store::Variant>& variants)
{
    std::string unusable;
    for (const auto& variant : variants)
        if (!variant.header)
            unusable = fmt::format("entry {} cannot be used: {}", short_hex(variant.guards_digest),
                                   variant.header.error().message);
    if (!analysis.nearest) return unusable.empty() ? "no entry" : unusable;
    return fmt::format("{} on disk, the nearest differs: {}{}{}", plural(analysis.variants, "variant"),
                       guards::summarize(analysis.differences), unusable.empty() ? "" : "; ", unusable);
}

bool holds(const Situation& situation, const cachefmt::EntryHeader& header)
{
    return guards::evaluate(header.guards, situation.now, situation.relaxation).empty();
}

} // namespace

bool refreshes(const Situation& situation) noexcept
{
    return situation.policy == Policy::refresh && situation.has_callable;
}

Plan on_miss(const Situation& situation, std::string reason, MissAnalysis analysis)
{
    const bool records = situation.caching_is_off.empty() && situation.has_callable &&
                         (situation.policy == Policy::read_write || situation.policy == Policy::refresh ||
                          situation.policy == Policy::no_compile);
    if (!records) return {Action::run_as_it_is, {}, std::move(reason), true, std::move(analysis)};
    if (situation.has_pending) return {Action::run_as_it_is, {}, "another call of it is being recorded", false};
    return {Action::record, {}, std::move(reason), true, std::move(analysis)};
}

Plan decide(const Situation& situation, const Headers& headers)
{
    if (situation.policy == Policy::off)
        return on_miss(situation, situation.uses_graphs ? "policy off" : store::switched_off("entries"),
                       because("off"));
    if (!situation.caching_is_off.empty())
        return on_miss(situation, "caching is off: " + situation.caching_is_off, because("off"));
    if (refreshes(situation)) return on_miss(situation, "policy refresh", because("refresh"));
    if (const auto exact = headers.exact(); exact && holds(situation, *exact)) {
        if (exact->kind == cachefmt::EntryKind::tombstone) return tombstoned(situation, *exact);
        return {Action::replay, {exact->key}};
    }
    // No entry has exactly these guards. Another variant may be valid (a newer accepted driver, a stronger alignment);
    // if no variant is valid, the nearest variant explains the miss.
    const auto variants = headers.all();
    if (!variants) return on_miss(situation, variants.error().message, because("look_up_failed"));
    Plan plan{Action::replay};
    for (const auto& variant : *variants) {
        if (!variant.header || !holds(situation, *variant.header)) continue;
        if (variant.header->kind != cachefmt::EntryKind::tombstone)
            plan.entries.push_back(variant.header->key);
        else if (plan.entries.empty())
            return tombstoned(situation, *variant.header);
    }
    if (!plan.entries.empty()) return plan;
    auto analysis = judge(situation, *variants);
    auto reason = explain(analysis, *variants);
    return on_miss(situation, std::move(reason), std::move(analysis));
}

} // namespace warmgraph
