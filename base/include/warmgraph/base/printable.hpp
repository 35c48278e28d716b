// Text from outside (names, environment variables, entries, drivers) on its way to a message, a log or a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warmgraph {

/// The text with control characters, Unicode's invisible ones (marks of direction such as U+202E, joiners, line separators)
/// and invalid UTF-8 as \xNN, so that it cannot drive a terminal, break a line or look like another text; cut after `limit`
/// bytes with "..." at the end.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);
/// The same of each line: its line ends stay.
[[nodiscard]] std::string printable_lines(std::string_view text, std::size_t limit = std::string_view::npos);

/// Valid UTF-8 without control characters: what names in stored files are held to. printable() may show it in another way.
[[nodiscard]] bool is_plain(std::string_view text) noexcept;

} // namespace warmgraph
