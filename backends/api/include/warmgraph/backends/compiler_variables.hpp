// Environment variables with compiler flags. They influence the code, as options do.
#pragma once

#include <span>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends {

/// Adds a fact "env.NAME" for each variable that is set and not empty. A variable that is not set adds no fact, so
/// older entries stay valid. As thread-safe as getenv(3).
void add_compiler_variables(std::vector<cachefmt::Fact>& facts, std::span<const char* const> names);

} // namespace warmgraph::backends
