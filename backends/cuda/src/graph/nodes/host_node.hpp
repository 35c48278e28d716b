// Host function nodes.
#pragma once

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

[[nodiscard]] Result<void> add(AddCall& call, const RawHost& work);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawHost& before, const RawHost& after);
[[nodiscard]] Result<RawWork> read_host(const Driver& driver, CUgraphNode node);

} // namespace warmgraph::backends::cuda
