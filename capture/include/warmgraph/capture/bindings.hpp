// The bindings of a restored graph.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/capture/interface.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// Returns the bindings, without the regions that `graph` owns. Finds events and semaphores from `handles` by name.
[[nodiscard]] replay::Bindings bindings_of(const cachefmt::Graph& graph, const std::vector<MemoryRef>& regions,
                                           const std::vector<std::uint64_t>& scalars, const DeclaredHandles& handles);

} // namespace warmgraph
