// Event nodes: a graph records outside events or waits for them.
#pragma once

#include "graph/nodes/node_calls.hpp"

namespace warmgraph::backends::cuda {

[[nodiscard]] Result<void> add(AddCall& call, const RawEventRecord& work);
[[nodiscard]] Result<void> add(AddCall& call, const RawEventWait& work);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawEventRecord& before, const RawEventRecord& after);
[[nodiscard]] Result<void> change(const ChangeCall& call, RawEventWait& before, const RawEventWait& after);
[[nodiscard]] Result<RawWork> read_event_record(const Driver& driver, CUgraphNode node);
[[nodiscard]] Result<RawWork> read_event_wait(const Driver& driver, CUgraphNode node);

} // namespace warmgraph::backends::cuda
