#include "warmgraph/autotune/configuration.hpp"

#include <algorithm>
#include <set>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::autotune {
namespace {

constexpr std::size_t k_longest_name = 64;

bool is_identifier(std::string_view name)
{
    const auto is_letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
    const auto is_other = [&](char c) { return is_letter(c) || (c >= '0' && c <= '9'); };
    return !name.empty() && name.size() <= k_longest_name && is_letter(name.front()) &&
           std::ranges::all_of(name, is_other);
}

std::set<std::string> names_of(const Configuration& configuration)
{
    std::set<std::string> names;
    for (const auto& [name, value] : configuration) names.insert(name);
    return names;
}

Result<void> check_candidates(const std::vector<Configuration>& candidates)
{
    if (candidates.empty() || candidates.size() > k_most_candidates)
        return fail(ErrorCode::invalid_argument, "{} candidates, expected 1 to {}: the first is the default",
                    candidates.size(), k_most_candidates);
    const auto names = names_of(candidates.front());
    if (names.empty() || names.size() > k_most_parameters)
        return fail(ErrorCode::invalid_argument, "a candidate has {} parameters, expected 1 to {}", names.size(),
                    k_most_parameters);
    for (const std::string& name : names)
        if (!is_identifier(name))
            return fail(ErrorCode::invalid_argument,
                        "parameter '{}' is not a valid macro name: use letters, digits and '_', at most {}",
                        printable(name, k_longest_name), k_longest_name);
    std::set<Configuration> seen;
    for (const Configuration& candidate : candidates) {
        if (names_of(candidate) != names)
            return fail(ErrorCode::invalid_argument, "candidate '{}' has other parameters than the first one, '{}'",
                        to_text(candidate), to_text(candidates.front()));
        if (!seen.insert(candidate).second)
            return fail(ErrorCode::invalid_argument, "candidate '{}' is there twice", to_text(candidate));
    }
    return {};
}

Result<void> check_range(const Range& range)
{
    if (range.values.empty() || range.values.size() > k_most_values)
        return fail(ErrorCode::invalid_argument, "the range of {} has {} values, expected 1 to {}", range.name,
                    range.values.size(), k_most_values);
    if (std::ranges::adjacent_find(range.values, std::greater_equal{}) != range.values.end())
        return fail(ErrorCode::invalid_argument,
                    "the values of {} are not in ascending order: sort them, and give each once", range.name);
    return {};
}

bool has_value(const Space& space, const std::string& name, std::int64_t value)
{
    const auto is_candidates = [&](const Configuration& candidate) {
        const auto found = candidate.find(name);
        return found != candidate.end() && found->second == value;
    };
    const auto range = std::ranges::find(space.ranges, name, &Range::name);
    return std::ranges::any_of(space.candidates, is_candidates) ||
           (range != space.ranges.end() && std::ranges::binary_search(range->values, value));
}

} // namespace

std::string to_text(const Configuration& configuration)
{
    std::string text;
    for (const auto& [name, value] : configuration)
        text += fmt::format("{}{}={}", text.empty() ? "" : " ", name, value);
    return text;
}

Result<void> check(const Space& space)
{
    if (auto ok = check_candidates(space.candidates); !ok) return ok;
    std::set<std::string> seen;
    for (const Range& range : space.ranges) {
        if (!space.candidates.front().contains(range.name))
            return fail(ErrorCode::invalid_argument, "a range is given for '{}', but no candidate has this parameter",
                        printable(range.name, k_longest_name));
        if (!seen.insert(range.name).second)
            return fail(ErrorCode::invalid_argument, "two ranges are given for {}", range.name);
        if (auto ok = check_range(range); !ok) return ok;
    }
    return {};
}

Digest configs_hash(const std::vector<Configuration>& candidates)
{
    Sha256 hash;
    for (const Configuration& candidate : candidates) hash.update_field(to_text(candidate));
    return hash.finish();
}

std::size_t matches(const Space& space, const Configuration& configuration)
{
    return static_cast<std::size_t>(std::ranges::count(space.candidates, configuration));
}

std::string why_outside(const Space& space, const Configuration& configuration)
{
    if (space.candidates.empty() || names_of(configuration) != names_of(space.candidates.front()))
        return fmt::format("'{}' has other parameters than the candidates", to_text(configuration));
    for (const auto& [name, value] : configuration)
        if (!has_value(space, name, value))
            return fmt::format("{}={} is outside the declared range, and no candidate has it", name, value);
    if (space.admits && !space.admits(configuration))
        return fmt::format("the program does not admit '{}'", to_text(configuration));
    return {};
}

std::vector<Configuration> neighbours(const Space& space, const Range& range, const Configuration& configuration)
{
    std::vector<Configuration> found;
    const std::int64_t value = configuration.at(range.name);
    const auto add = [&](std::int64_t next) {
        Configuration other = configuration;
        other[range.name] = next;
        if (!space.admits || space.admits(other)) found.push_back(std::move(other));
    };
    const auto at = std::ranges::lower_bound(range.values, value);
    if (at != range.values.begin()) add(*std::prev(at));
    const auto above = std::ranges::upper_bound(range.values, value);
    if (above != range.values.end()) add(*above);
    return found;
}

} // namespace warmgraph::autotune
