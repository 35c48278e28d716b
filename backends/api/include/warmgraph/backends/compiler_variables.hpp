// Flags that a compiler takes from the environment: part of what decides about the code, as its options are.
#pragma once

#include <span>
#include <vector>

#include "warmgraph/cachefmt/guard_data.hpp"

namespace warmgraph::backends {

/// Adds a fact "env.NAME" for each of these variables that is set and not empty. Entries that were recorded without them have
/// none. Thread-safe as getenv(3) is.
void add_compiler_variables(std::vector<cachefmt::Fact>& facts, std::span<const char* const> names);

} // namespace warmgraph::backends
