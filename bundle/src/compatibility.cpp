#include "warmgraph/bundle/compatibility.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"
#include "warmgraph/guards/environment.hpp"

namespace warmgraph::bundle {
namespace {

using cachefmt::Fact;
using cachefmt::Guards;

/// Returns the facts whose names both sides have: first those of `recorded`, then those of `here`.
std::pair<Guards, Guards> comparable(const Guards& recorded, const MachineFacts& here)
{
    std::pair<Guards, Guards> sides;
    for (const Fact& fact : recorded.facts) {
        const auto known = std::ranges::find(here, fact.name, &Fact::name);
        if (known == here.end()) continue;
        sides.first.facts.push_back(fact);
        sides.second.facts.push_back(*known);
    }
    return sides;
}

} // namespace

Compatibility judge(const Guards& recorded, const MachineFacts& here, const guards::Relaxation& relaxation)
{
    const auto [then, now] = comparable(recorded, here);
    const auto exact = guards::evaluate(then, now);
    if (exact.empty()) return {};
    const auto relaxed = guards::evaluate(then, now, {guards::VersionRule::same_or_newer});
    const auto judged = guards::evaluate(then, now, relaxation);
    if (judged.empty()) return {};
    const guards::Mismatch& first = relaxed.empty() ? judged.front() : relaxed.front();
    Compatibility fit{relaxed.empty() ? Verdict::fits_after : Verdict::does_not, first.fact,
                      fmt::format("{} {} recorded, {} now", first.fact, cachefmt::fact_text(first.recorded),
                                  cachefmt::fact_text(first.now))};
    if (fit.verdict == Verdict::fits_after)
        fit.detail += ": set CacheOptions::accept_newer_driver";
    else if (!first.cure.empty())
        fit.detail += ": " + first.cure;
    return fit;
}

std::string to_text(const Compatibility& fit)
{
    switch (fit.verdict) {
    case Verdict::fits: return "fits";
    case Verdict::fits_after:
        return fmt::format("fits if {} is accepted", fit.after.empty() ? "a newer " + fit.field : fit.after);
    case Verdict::does_not: break;
    }
    return fmt::format("does not fit, because of {}", fit.field);
}

std::vector<Fact> shared_environment(const std::vector<cachefmt::EntryHeader>& entries)
{
    std::vector<Fact> shared;
    if (entries.empty()) return shared;
    for (const Fact& fact : guards::environment_of(entries.front().guards.facts)) {
        const bool is_in_all = std::ranges::all_of(entries, [&](const cachefmt::EntryHeader& header) {
            return std::ranges::find(header.guards.facts, fact) != header.guards.facts.end();
        });
        if (is_in_all) shared.push_back(fact);
    }
    return shared;
}

std::string common_environment_key(const std::vector<cachefmt::EntryHeader>& entries)
{
    std::string key;
    for (const cachefmt::EntryHeader& header : entries) {
        const std::string its = guards::environment_key(header.guards.facts);
        if (its.empty() || (!key.empty() && its != key)) return {};
        key = its;
    }
    return key;
}

std::string environment_text(const std::vector<Fact>& facts)
{
    std::vector<std::string> parts;
    for (const Fact& fact : facts)
        parts.push_back(fmt::format("{} {}", printable(fact.name), cachefmt::fact_text(fact.value)));
    return fmt::format("{}", fmt::join(parts, ", "));
}

std::string device_of(const Guards& guards)
{
    if (!guards.tensors.empty() && guards.tensors.front().device.find(':') != std::string::npos)
        return guards.tensors.front().device;
    const auto backend = std::ranges::find(guards.facts, cachefmt::fact::k_backend, &Fact::name);
    return backend != guards.facts.end() ? backend->value : "opencl";
}

} // namespace warmgraph::bundle
