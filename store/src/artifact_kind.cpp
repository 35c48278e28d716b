#include "warmgraph/store/artifact_kind.hpp"

#include <algorithm>

#include <fmt/ranges.h>

#include "warmgraph/base/printable.hpp"
#include "warmgraph/cachefmt/key.hpp"

namespace warmgraph::store {
namespace {

constexpr std::size_t k_shown_of_word = 64; // bytes of an unknown word in a message

constexpr bool is_in_order()
{
    for (const KindRow& row : k_kinds)
        if (find_row(row.kind) != &row) return false;
    return true;
}
static_assert(is_in_order());

/// True if the folders of all kinds are reserved names. A model with such a name would be stored among the kind's
/// files.
constexpr bool are_reserved()
{
    return std::ranges::all_of(k_kinds, [](const KindRow& row) {
        return row.kind == ArtifactKind::entries ||
               std::ranges::find(cachefmt::k_reserved_folders, row.folder) != cachefmt::k_reserved_folders.end();
    });
}
static_assert(are_reserved());

/// Returns e.g. "a, b or c".
std::string choice_text(const std::vector<std::string>& words)
{
    const std::vector<std::string> first(words.begin(), words.end() - 1);
    return fmt::format("{}{}{}", fmt::join(first, ", "), first.empty() ? "" : " or ", words.back());
}

} // namespace

std::vector<ArtifactKind> kinds_for(KindUse use)
{
    std::vector<ArtifactKind> kinds;
    for (const KindRow& row : k_kinds)
        if (row.is_for(use)) kinds.push_back(row.kind);
    return kinds;
}

std::vector<std::string> words_for(KindUse use)
{
    std::vector<std::string> words;
    for (const ArtifactKind kind : kinds_for(use)) words.emplace_back(to_string(kind));
    return words;
}

std::vector<ArtifactKind> kinds_with_files()
{
    std::vector<ArtifactKind> kinds;
    for (const KindRow& row : k_kinds)
        if (row.has_files()) kinds.push_back(row.kind);
    return kinds;
}

Result<ArtifactKind> parse_kind(std::string_view what, std::string_view word, KindUse use,
                                const std::vector<std::string>& others)
{
    std::string now;
    for (const KindRow& row : k_kinds) {
        if (!row.is_for(use)) continue;
        if (row.word == word) return row.kind;
        if (!word.empty() && std::ranges::find(row.old_words, word) != row.old_words.end())
            now = fmt::format(", which is called '{}' now", row.word);
    }
    auto words = words_for(use);
    words.insert(words.end(), others.begin(), others.end());
    return fail(ErrorCode::invalid_argument, "{} has the kind '{}'{}: expected {}", what,
                printable(word, k_shown_of_word), now, choice_text(words));
}

} // namespace warmgraph::store
