// Makes text from outside (names, environment variables, entries, drivers) safe for messages, logs and terminals.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warmgraph {

/// Writes control characters, invisible Unicode characters (marks of direction such as U+202E, joiners, line
/// separators) and invalid UTF-8 as \xNN, so that the text cannot drive a terminal, break a line or look like another
/// text. Longer text is cut after `limit` bytes and ends with "...".
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);
/// Like printable(), line by line: line ends stay.
[[nodiscard]] std::string printable_lines(std::string_view text, std::size_t limit = std::string_view::npos);

/// True for valid UTF-8 without control characters. Names in stored files must be plain; printable() may still escape
/// them.
[[nodiscard]] bool is_plain(std::string_view text) noexcept;

} // namespace warmgraph
