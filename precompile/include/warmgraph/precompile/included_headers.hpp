// The headers that a program's source includes: their contents are guards, as the source is.
#pragma once

#include <string>

namespace warmgraph {

struct IncludedHeaders {
    /// Hex: of the contents of all headers that are found, of those that they include, and of the order in which they are
    /// searched: through the options' folders; with quotes also beside the file that includes them, of the source itself in
    /// the working directory. What is not found is the compiler's own, whose version is another guard. Empty where none is
    /// found. Conditions of the preprocessor are not looked at: more headers are hashed than are used, never fewer.
    std::string digest{};
    std::string why_unknown{}; ///< empty; else what includes a file that only the compiler can name
};

[[nodiscard]] IncludedHeaders included_headers(const std::string& source, const std::string& options);

} // namespace warmgraph
