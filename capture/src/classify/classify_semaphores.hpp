// Semaphores of a captured node: their names, and the scalars that their values follow.
#pragma once

#include <string>

#include "classify/classify.hpp"

namespace warmgraph {

/// Returns the declared name of semaphore `number` of the node. not_recordable: the semaphore has no name, or two
/// names.
[[nodiscard]] Result<std::string> semaphore_name(const backends::RawGraph& graph, const NamedHandles& declared,
                                                 std::size_t node, std::size_t number);
/// Checks that semaphore_name() finds a name for every semaphore of the graph.
[[nodiscard]] Result<void> check_semaphore_names(const backends::RawGraph& graph, const NamedHandles& declared);

/// Returns the semaphore's value and flags: a constant, or a scalar plus a constant. not_recordable: anything else.
[[nodiscard]] Result<cachefmt::SemaphoreUse> semaphore_value(const Interface& interface, const Captures& captures,
                                                             std::size_t node, std::size_t number);

} // namespace warmgraph
