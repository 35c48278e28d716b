// The manual page warmgraph(1), made from the table of subcommands.
#pragma once

#include <string>

namespace warmgraph::tool {

[[nodiscard]] std::string manual_page(); ///< written in man(7) macros

} // namespace warmgraph::tool
