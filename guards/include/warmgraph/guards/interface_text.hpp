// The text of a function's declaration, which is the guard fact "interface".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/guards/numbers.hpp"

namespace warmgraph::guards {

inline constexpr const char* k_interface_fact = "interface";

/// Returns a text such as "1 input, 1 output, 1 state, 38 weights; scalar position i32 [0, 255]": the kinds of the
/// tensors in their order (their names are other guards), then each scalar with its range.
[[nodiscard]] std::string interface_text(std::span<const cachefmt::RegionKind> kinds,
                                         std::span<const NumberDecl> scalars, std::span<const ScalarRange> ranges);

struct DeclaredInterface {
    std::vector<cachefmt::RegionKind> kinds; ///< one kind for each tensor
    std::vector<NumberDecl> scalars;         ///< without their range if it is the range of the whole type
};

/// Returns the declaration whose interface_text() is `text`; `tensors` is its number of tensors. For an invalid text it
/// returns a declaration with another text, so callers that read the text from a file must compare.
[[nodiscard]] DeclaredInterface parse_interface(std::string_view text, std::size_t tensors);

} // namespace warmgraph::guards
