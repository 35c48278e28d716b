// What a function declares, as the text that is the guard fact "interface".
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/cachefmt/graph.hpp"
#include "warmgraph/guards/numbers.hpp"

namespace warmgraph::guards {

inline constexpr const char* k_interface_fact = "interface";

/// "1 input, 1 output, 1 state, 38 weights; scalar position i32 [0, 255]": the kinds of the tensors in their order (their
/// names are guarded beside it), then each scalar with its range.
[[nodiscard]] std::string interface_text(std::span<const cachefmt::RegionKind> kinds,
                                         std::span<const NumberDecl> scalars, std::span<const ScalarRange> ranges);

struct DeclaredInterface {
    std::vector<cachefmt::RegionKind> kinds; ///< of the tensors
    std::vector<NumberDecl> scalars;         ///< a range that is the whole type's is none
};

/// The declaration of `tensors` tensors whose interface_text() this is. Of any other text it gives one whose text is another:
/// whoever reads it from a file compares.
[[nodiscard]] DeclaredInterface parse_interface(std::string_view text, std::size_t tensors);

} // namespace warmgraph::guards
