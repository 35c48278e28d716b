// A miss of this process, before its reason is known.
#pragma once

#include "warmgraph/spec.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph {

[[nodiscard]] store::Miss new_miss(Policy policy);

} // namespace warmgraph
