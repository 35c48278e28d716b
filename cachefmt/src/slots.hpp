// Visits every slot of a node of any kind.
#pragma once

#include <functional>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

void for_each_slot(Node& node, const std::function<void(Slot&)>& visit);

} // namespace warmgraph::cachefmt
