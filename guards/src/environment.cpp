#include "warmgraph/guards/environment.hpp"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/cachefmt/fact_names.hpp"

namespace warmgraph::guards {

bool is_of_environment(std::string_view fact) noexcept
{
    namespace name = cachefmt::fact;
    constexpr std::array<std::string_view, 4> k_prefixes{name::k_backend, name::k_device, "driver.", "runtime."};
    return std::ranges::any_of(k_prefixes, [&](std::string_view prefix) { return fact.starts_with(prefix); });
}

std::vector<Fact> environment_of(const std::vector<Fact>& facts)
{
    std::vector<Fact> found;
    std::ranges::copy_if(facts, std::back_inserter(found),
                         [](const Fact& fact) { return fact.role != Role::advisory && is_of_environment(fact.name); });
    return found;
}

std::string environment_key(const std::vector<Fact>& facts)
{
    constexpr std::size_t k_digits = 12;
    const auto environment = environment_of(facts);
    if (environment.empty()) return {};
    Sha256 hash;
    for (const Fact& fact : environment) hash.update_field(fact.name).update_field(fact.value);
    return to_hex(hash.finish()).substr(0, k_digits);
}

EnvironmentComparison compare_environments(const std::vector<Fact>& recorded, const std::vector<Fact>& here)
{
    Guards then, now;
    for (const Fact& fact : environment_of(recorded)) {
        const auto known = std::ranges::find(here, fact.name, &Fact::name);
        if (known == here.end()) continue;
        then.facts.push_back(fact);
        now.facts.push_back(*known);
    }
    auto exact = evaluate(then, now);
    if (exact.empty()) return {};
    auto relaxed = evaluate(then, now, {VersionRule::same_or_newer});
    if (relaxed.empty()) return {EnvironmentFit::newer, std::move(exact)};
    return {EnvironmentFit::differs, std::move(relaxed)};
}

std::string fields_text(const std::vector<Mismatch>& fields)
{
    std::vector<std::string> texts;
    for (const Mismatch& field : fields)
        texts.push_back(fmt::format("{} {} recorded, {} here", printable(field.fact), printable(field.recorded),
                                    printable(field.now)));
    return fmt::format("{}", fmt::join(texts, "; "));
}

} // namespace warmgraph::guards
