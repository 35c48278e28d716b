// For each kind of stored node: where its slots are, and how a raw node is made from it.
#pragma once

#include <functional>
#include <span>

#include "warmgraph/backends/node_places.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

struct Bindings;

/// Calls `visit` for each slot of the node, with the slot's place in the raw node.
void for_each_slot(const cachefmt::Node& node,
                   const std::function<void(const backends::NodePlace& place, const cachefmt::Slot& slot)>& visit);

/// Makes the node's work without the slots' values. not_found: the node's host function is not registered in this
/// process.
[[nodiscard]] Result<backends::RawWork> unbound_work(const cachefmt::Node& node,
                                                     std::span<backends::Module* const> modules,
                                                     const Bindings& bindings);

} // namespace warmgraph::replay
