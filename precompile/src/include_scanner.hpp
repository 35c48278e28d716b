// Finds the #include directives in a text.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgraph::precompile {

struct Includes {
    std::vector<std::string> names{}; ///< in order, without duplicates; includes names in comments and inactive parts
    std::string computed{}; ///< the first directive with a file that a macro or the assembler names: "#include CONFIG"
};

[[nodiscard]] Includes scan_includes(std::string_view text);

} // namespace warmgraph::precompile
