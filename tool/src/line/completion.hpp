// Completions for shells, made from the table of subcommands.
#pragma once

#include <string>

namespace warmgraph::tool {

[[nodiscard]] std::string bash_completion(); ///< needs bash 4 and nothing else
[[nodiscard]] std::string zsh_completion();

} // namespace warmgraph::tool
