#include "plan.hpp"

#include "warmgraph/base/error.hpp"

namespace warmgraph {

namespace {

using Action = Plan::Action;

Plan tombstoned(const Situation& situation, const cachefmt::EntryHeader& header)
{
    return {Action::refuse,
            {},
            fmt::format("it was recorded twice under the same guards with different graphs ({}): {}; give what changed "
                        "as a guard (Spec::config, Spec::code or Spec::version), then `warmgraph clear --func {}`",
                        header.info.reason, fmt::join(header.info.difference, "; "), situation.function)};
}

std::string explain(const Situation& situation, const std::vector<store::Variant>& variants)
{
    std::vector<guards::Mismatch> nearest;
    std::size_t readable = 0;
    std::string reason = "no entry";
    for (const auto& variant : variants) {
        if (!variant.header) {
            reason =
                fmt::format("entry {} cannot be used: {}", short_hex(variant.guards), variant.header.error().message);
            continue;
        }
        auto mismatches = guards::evaluate(variant.header->guards, situation.now, situation.relaxation);
        if (readable++ == 0 || mismatches.size() < nearest.size()) nearest = std::move(mismatches);
    }
    if (readable == 0) return reason;
    return fmt::format("{} variant{} on disk, the nearest differs: {}", readable, readable == 1 ? "" : "s",
                       guards::summarize(nearest));
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

Plan on_miss(const Situation& situation, std::string reason)
{
    const bool records = situation.caching_is_off.empty() && situation.has_callable &&
                         (situation.policy == Policy::read_write || situation.policy == Policy::refresh);
    if (!records) return {Action::run_as_it_is, {}, std::move(reason)};
    if (situation.has_pending) return {Action::run_as_it_is, {}, "another call of it is being recorded", false};
    return {Action::record, {}, std::move(reason)};
}

Plan decide(const Situation& situation, const Headers& headers)
{
    if (situation.policy == Policy::off) return on_miss(situation, "policy off");
    if (!situation.caching_is_off.empty()) return on_miss(situation, "caching is off: " + situation.caching_is_off);
    if (refreshes(situation)) return on_miss(situation, "policy refresh");
    if (const auto exact = headers.exact(); exact && holds(situation, *exact)) {
        if (exact->kind == cachefmt::EntryKind::tombstone) return tombstoned(situation, *exact);
        return {Action::replay, {exact->key}};
    }
    // Not under these very guards: another variant may still be valid (a newer driver that is accepted, a stronger
    // alignment), and if none is, the nearest one explains the miss.
    const auto variants = headers.all();
    if (!variants) return on_miss(situation, variants.error().message);
    Plan plan{Action::replay};
    for (const auto& variant : *variants) {
        if (!variant.header || !holds(situation, *variant.header)) continue;
        if (variant.header->kind != cachefmt::EntryKind::tombstone)
            plan.entries.push_back(variant.header->key);
        else if (plan.entries.empty())
            return tombstoned(situation, *variant.header);
    }
    return plan.entries.empty() ? on_miss(situation, explain(situation, *variants)) : plan;
}

} // namespace warmgraph
