#include "line/suggestion.hpp"

#include <algorithm>
#include <cstddef>

#include <fmt/format.h>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::tool {

namespace {

constexpr std::size_t k_longest = 256;

/// The number of edits between two words (optimal string alignment).
std::size_t distance(std::string_view a, std::string_view b)
{
    std::vector<std::vector<std::size_t>> rows(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
    for (std::size_t i = 0; i <= a.size(); ++i) rows[i][0] = i;
    for (std::size_t j = 0; j <= b.size(); ++j) rows[0][j] = j;
    for (std::size_t i = 1; i <= a.size(); ++i) {
        for (std::size_t j = 1; j <= b.size(); ++j) {
            const std::size_t other = rows[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
            rows[i][j] = std::min({rows[i - 1][j] + 1, rows[i][j - 1] + 1, other});
            const bool is_swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            if (is_swapped) rows[i][j] = std::min(rows[i][j], rows[i - 2][j - 2] + 1);
        }
    }
    return rows[a.size()][b.size()];
}

} // namespace

std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates)
{
    word = word.substr(0, k_longest);
    if (word.empty()) return {};
    std::string nearest;
    std::size_t fewest = std::max<std::size_t>(1, word.size() / 3) + 1;
    for (const std::string& candidate : candidates) {
        const bool begins = word.size() > 1 && candidate.starts_with(word);
        const std::size_t edits = begins ? 1 : distance(word, std::string_view(candidate).substr(0, k_longest));
        if (edits >= fewest) continue;
        fewest = edits;
        nearest = candidate;
    }
    return nearest;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates)
{
    const std::string meant = nearest_word(word, candidates);
    return meant.empty() ? "" : fmt::format("; did you mean '{}'?", printable(meant));
}

} // namespace warmgraph::tool
