// Makes a record of a miss in this process; its reason is not known yet.
#pragma once

#include "warmgraph/spec.hpp"
#include "warmgraph/store/miss.hpp"

namespace warmgraph {

[[nodiscard]] store::Miss new_miss(Policy policy);

} // namespace warmgraph
