// "Did you mean": suggests the intended word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgraph::tool {

/// Returns the candidate with the fewest edits (a letter added, removed or replaced, or two swapped), or one that
/// begins with `word`; "" when none is near. Takes linear time in the candidates; reads only their first 256 bytes.
[[nodiscard]] std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// Returns "; did you mean 'ls'?", or an empty text.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

} // namespace warmgraph::tool
