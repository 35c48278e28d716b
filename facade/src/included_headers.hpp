// The headers that a program's source includes: their contents are guards, as the source is.
#pragma once

#include <string>

namespace warmgraph {

/// A digest (hex) of the contents of all headers that are found, and of those that they include: through the options'
/// -I folders; with quotes also beside the file that includes them, of the source itself in the working directory. What
/// is not found is the compiler's own, whose version is another guard. Empty where none is found. Conditions of the
/// preprocessor are not looked at: more headers are hashed than are used, never fewer.
[[nodiscard]] std::string included_headers(const std::string& source, const std::string& options);

} // namespace warmgraph
