// Checks the names of kernels, variables and host functions.
#pragma once

#include <string_view>

#include "warmgraph/base/error.hpp"

namespace warmgraph::cachefmt {

/// Accepts 1 to `longest` bytes of printable ASCII. `what` starts the message.
[[nodiscard]] Result<void> validate_symbol(std::string_view what, std::string_view name, std::size_t longest);

inline constexpr std::size_t k_symbol_max =
    65'536; ///< bytes of a kernel's or variable's name: some names in CUTLASS have over 4,096

} // namespace warmgraph::cachefmt
