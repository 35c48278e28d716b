// Functions with which the engineering tests read the repository.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace warmgraph::test {

[[nodiscard]] std::filesystem::path source_dir();

/// All files under `folder` with one of these extensions, sorted, as paths relative to source_dir(). Build folders and
/// hidden folders are left out.
[[nodiscard]] std::vector<std::filesystem::path> files_under(const std::filesystem::path& folder,
                                                             const std::vector<std::string>& extensions);

/// The text of a file. Throws when the file cannot be read.
[[nodiscard]] std::string read_text(const std::filesystem::path& relative);

/// Replaces comments and the contents of string and character literals by spaces. Lines keep their numbers.
[[nodiscard]] std::string without_comments_and_strings(std::string_view text);

[[nodiscard]] std::size_t line_of(std::string_view text, std::size_t position);

/// An include: the text in `#include "..."` or `#include <...>`.
struct Include {
    std::string path;
    std::size_t line = 0;
};
[[nodiscard]] std::vector<Include> includes_of(const std::string& text);

} // namespace warmgraph::test
