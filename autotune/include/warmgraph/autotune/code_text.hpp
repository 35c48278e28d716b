// A kernel's source as its key sees it.
#pragma once

#include <string>
#include <string_view>

namespace warmgraph::autotune {

/// OpenCL C or CUDA C++ without its comments, which hold paths, dates and names: each becomes a space, as the language
/// has it, and a line that held nothing else goes; the last line has an end. Literals of strings (raw ones too) and characters stay. What cannot be
/// told for certain stays as well: at worst, another comment is another text.
[[nodiscard]] std::string without_comments(std::string_view source);

} // namespace warmgraph::autotune
