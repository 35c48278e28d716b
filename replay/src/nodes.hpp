// The knowledge about each kind of stored node that replaying needs.
#pragma once

#include <functional>
#include <span>

#include "warmgraph/backends/places.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

struct Bindings;

/// Calls `visit` for each slot of the node, with the slot's place in the raw node.
void for_each_slot(const cachefmt::Node& node,
                   const std::function<void(const backends::Place& place, const cachefmt::Slot& slot)>& visit);

/// Makes the node's work without the slots' values. not_found: this process has not registered a host function.
[[nodiscard]] Result<backends::RawWork> unbound_work(const cachefmt::Node& node,
                                                     std::span<backends::Module* const> modules,
                                                     const Bindings& bindings);

} // namespace warmgraph::replay
