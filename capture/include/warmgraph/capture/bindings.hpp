// What a restored graph is bound to.
#pragma once

#include <cstdint>
#include <vector>

#include "warmgraph/capture/interface.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// For `graph`: its own regions are left out, its events and semaphores are those declared by the same name.
[[nodiscard]] replay::Bindings bindings_of(const cachefmt::Graph& graph, const std::vector<MemoryRef>& regions,
                                           const std::vector<std::uint64_t>& scalars, const DeclaredHandles& handles);

} // namespace warmgraph
