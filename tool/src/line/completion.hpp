// Shell completions, made from the table of subcommands.
#pragma once

#include <string>

namespace warmgraph::tool {

[[nodiscard]] std::string bash_completion(); ///< needs only bash 4
[[nodiscard]] std::string zsh_completion();

} // namespace warmgraph::tool
