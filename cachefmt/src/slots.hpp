// Every slot of a node, wherever its kind keeps them.
#pragma once

#include <functional>

#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::cachefmt {

void for_each_slot(Node& node, const std::function<void(Slot&)>& visit);

} // namespace warmgraph::cachefmt
