// Text from outside (names, environment variables, entries, drivers) on its way to a message, a log or a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace warmgraph {

/// The text with control characters and invalid UTF-8 as \xNN, so that it cannot drive a terminal or break a line; cut
/// after `limit` bytes with "..." at the end.
[[nodiscard]] std::string printable(std::string_view text, std::size_t limit = std::string_view::npos);

} // namespace warmgraph
