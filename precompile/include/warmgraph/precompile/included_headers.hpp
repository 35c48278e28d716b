// The headers that a program's source includes. Their contents are guards, like the source.
#pragma once

#include <string>

namespace warmgraph {

struct IncludedHeaders {
    /// Hex digest of all headers, also of the headers that headers include, and of their search order. Headers are
    /// searched in the options' folders; with quotes also beside the including file (for the source: in the working
    /// directory). A name without a file is a header of the compiler itself; the compiler's version covers it. Empty if
    /// no header was found. Ignores preprocessor conditions, so more headers may be hashed than are used, never fewer.
    std::string digest{};
    /// Names the #include that only the compiler can resolve; empty if there is no such #include.
    std::string why_unknown{};
};

[[nodiscard]] IncludedHeaders included_headers(const std::string& source, const std::string& options);

} // namespace warmgraph
