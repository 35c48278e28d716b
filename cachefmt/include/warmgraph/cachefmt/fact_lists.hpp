// Facts that come in lists: what a program finds of a model are hundreds, and one text is compared, hashed and passed on
// sooner than a string for each name and each value.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::cachefmt {

/// A fact whose name ends with this, and whose value has lines of a name, a tab and a value, stands for these facts. Their
/// names have the first word of its own before them: "config.model *" holds "config.model.scale" as "model.scale\t2.0".
inline constexpr const char* k_list_suffix = " *";

/// How many facts it stands for: 1 where it is no list.
[[nodiscard]] std::size_t facts_in(const Fact& fact) noexcept;
/// Whether some of them are lists.
[[nodiscard]] bool has_lists(std::span<const Fact> facts) noexcept;
/// All of them, with what lists hold in place of the lists: in the order of their names, of one name the last. Without lists
/// as they are.
[[nodiscard]] std::vector<Fact> each_fact(std::span<const Fact> facts);

} // namespace warmgraph::cachefmt
