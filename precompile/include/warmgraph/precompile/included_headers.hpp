// The headers that a program's source includes. Their contents are guards, like the source.
#pragma once

#include <string>

namespace warmgraph {

struct IncludedHeaders {
    /// Hex digest of all headers, the headers that they include, and their search order. Headers are searched in the
    /// options' folders; with quotes also beside the including file (for the source: in the working directory). Names
    /// without a file are the compiler's own headers, which its version covers. Empty when no header was found. Ignores
    /// preprocessor conditions, so more headers may be hashed than are used, never fewer.
    std::string digest{};
    std::string why_unknown{}; ///< empty, or a text that names the #include that only the compiler can resolve
};

[[nodiscard]] IncludedHeaders included_headers(const std::string& source, const std::string& options);

} // namespace warmgraph
