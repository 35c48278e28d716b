// What replaying knows of each kind of stored node.
#pragma once

#include <functional>
#include <span>

#include "warmgraph/backends/places.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/graph.hpp"

namespace warmgraph::replay {

struct Bindings;

/// Calls `visit` for each slot of the node, with the place of the raw node that its value goes to.
void for_each_slot(const cachefmt::Node& node,
                   const std::function<void(const backends::Place& place, const cachefmt::Slot& slot)>& visit);

/// With everything but what its slots hold. not_found: a host function that this process has not registered.
[[nodiscard]] Result<backends::RawWork> unbound_work(const cachefmt::Node& node,
                                                     std::span<backends::Module* const> modules,
                                                     const Bindings& bindings);

} // namespace warmgraph::replay
