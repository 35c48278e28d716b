// "Did you mean": the word that was probably meant.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace warmgraph::tool {

/// The candidate that takes the fewest edits (a letter more, less, another, or two swapped), or that `word` begins; ""
/// where none is near. Linear in the candidates; only their first 256 bytes count.
[[nodiscard]] std::string nearest_word(std::string_view word, const std::vector<std::string>& candidates);

/// "; did you mean 'ls'?", or nothing.
[[nodiscard]] std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

} // namespace warmgraph::tool
