// Facts in lists. A model has hundreds of facts, and one text for all is faster to compare, hash and pass on than two
// strings for each.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::cachefmt {

/// A fact is a list if its name ends with this and each line of its value is a name, a tab and a value. The first word
/// of the list's name comes before each name: "config.model *" with "model.scale\t2.0" means "config.model.scale".
inline constexpr const char* k_list_suffix = " *";

/// The number of facts in the list; 1 for an ordinary fact.
[[nodiscard]] std::size_t facts_in(const Fact& fact) noexcept;
/// True if one of the facts is a list.
[[nodiscard]] bool has_lists(std::span<const Fact> facts) noexcept;
/// Expands the lists. Returns all facts sorted by name; if several facts have one name, only the last one stays.
/// Without lists, returns the facts unchanged.
[[nodiscard]] std::vector<Fact> each_fact(std::span<const Fact> facts);

} // namespace warmgraph::cachefmt
