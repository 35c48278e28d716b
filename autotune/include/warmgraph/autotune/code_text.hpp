// The form of a kernel's source from which the kernel's key is computed.
#pragma once

#include <string>
#include <string_view>

namespace warmgraph::autotune {

/// Removes comments from OpenCL C or CUDA C++, because they hold paths, dates and names. Each comment becomes a space,
/// as in the language; a line with nothing else is removed; the last line gets a line end. String literals (raw ones
/// too) and character literals stay. A text that only may be a comment stays, so at worst a changed comment changes the
/// key.
[[nodiscard]] std::string without_comments(std::string_view source);

} // namespace warmgraph::autotune
