// Semaphores of a captured node: which ones by name, and what their values follow.
#pragma once

#include <string>

#include "classify/classify.hpp"

namespace warmgraph {

/// The name under which semaphore `number` of the node was declared. not_recordable: under none, or under two.
[[nodiscard]] Result<std::string> semaphore_name(const backends::RawGraph& graph, const NamedHandles& declared,
                                                 std::size_t node, std::size_t number);
/// That semaphore_name knows them all.
[[nodiscard]] Result<void> check_semaphore_names(const backends::RawGraph& graph, const NamedHandles& declared);

/// Its value and flags: a constant, or a scalar plus a constant. not_recordable: anything else.
[[nodiscard]] Result<cachefmt::SemaphoreUse> semaphore_value(const Interface& interface, const Captures& captures,
                                                             std::size_t node, std::size_t number);

} // namespace warmgraph
