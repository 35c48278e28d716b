#include "warmgraph/store/events.hpp"

#include <algorithm>

namespace warmgraph::store {
namespace {

constexpr std::size_t k_longest_reason = 48;
constexpr std::ptrdiff_t k_most_reasons = 32; ///< the most reasons of each kind
constexpr std::string_view k_other = "other";

bool is_word(std::string_view reason) noexcept
{
    const auto is_allowed = [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    };
    return !reason.empty() && reason.size() <= k_longest_reason && std::ranges::all_of(reason, is_allowed);
}

/// Stays at the maximum instead of wrapping to 0.
void add_up(std::uint64_t& into, std::uint64_t more) noexcept
{
    if (__builtin_add_overflow(into, more, &into)) into = UINT64_MAX;
}

} // namespace

std::string_view to_string(EventKind kind) noexcept
{
    switch (kind) {
    case EventKind::hit: return "hit";
    case EventKind::miss: return "miss";
    case EventKind::recorded: return "recorded";
    case EventKind::refused: return "refused";
    case EventKind::evicted: return "evicted";
    case EventKind::damaged: return "damaged";
    case EventKind::untrusted: return "untrusted";
    }
    return "unknown";
}

void Events::add(EventKind kind, std::string_view reason, const Tally& tally)
{
    std::string word{is_word(reason) ? reason : k_other};
    if (!m_tallies.contains({kind, word})) {
        const auto of_kind = std::ranges::count(m_tallies, kind, [](const auto& item) { return item.first.first; });
        if (of_kind >= k_most_reasons) word = k_other;
    }
    Tally& into = m_tallies[{kind, std::move(word)}];
    add_up(into.count, tally.count);
    add_up(into.bytes, tally.bytes);
    add_up(into.us, tally.us);
}

void Events::merge(const Events& more)
{
    for (const auto& [what, tally] : more.m_tallies) add(what.first, what.second, tally);
}

} // namespace warmgraph::store
