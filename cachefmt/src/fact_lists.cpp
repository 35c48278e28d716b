#include "warmgraph/cachefmt/fact_lists.hpp"

#include <algorithm>
#include <ranges>
#include <string_view>

namespace warmgraph::cachefmt {

namespace {

/// False if a line has no tab: ordinary facts may have any text.
bool is_list(const Fact& fact) noexcept
{
    if (!fact.name.ends_with(k_list_suffix) || fact.value.empty()) return false;
    std::string_view rest = fact.value;
    while (true) {
        const std::size_t end = rest.find('\n');
        if (rest.substr(0, end).find('\t') == std::string_view::npos) return false;
        if (end == std::string_view::npos) return true;
        rest.remove_prefix(end + 1);
    }
}

void append(std::vector<Fact>& facts, const Fact& list)
{
    const std::string word = list.name.substr(0, list.name.find('.') + 1);
    for (const auto part : std::views::split(std::string_view{list.value}, '\n')) {
        const std::string_view line{part};
        const std::size_t tab = line.find('\t');
        facts.push_back({word + std::string(line.substr(0, tab)), std::string(line.substr(tab + 1)), list.role});
    }
}

} // namespace

std::size_t facts_in(const Fact& fact) noexcept
{
    return is_list(fact) ? 1 + static_cast<std::size_t>(std::ranges::count(fact.value, '\n')) : 1;
}

bool has_lists(std::span<const Fact> facts) noexcept { return std::ranges::any_of(facts, is_list); }

std::vector<Fact> each_fact(std::span<const Fact> facts)
{
    if (!has_lists(facts)) return {facts.begin(), facts.end()};
    std::vector<Fact> all;
    for (const Fact& fact : facts) {
        if (is_list(fact))
            append(all, fact);
        else
            all.push_back(fact);
    }
    // Reversed and stable, so that the last one of equal names comes first: unique() keeps it.
    std::ranges::reverse(all);
    std::ranges::stable_sort(all, {}, &Fact::name);
    const auto rest = std::ranges::unique(all, {}, &Fact::name);
    all.erase(rest.begin(), rest.end());
    return all;
}

} // namespace warmgraph::cachefmt
