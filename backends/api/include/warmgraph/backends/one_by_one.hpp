// Launches a graph's nodes directly in a stream, so that the first launch need not wait for an exec.
#pragma once

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

class Stream;

/// True if enqueuing the nodes in one stream, in the graph's order (which is topological), does the same as a launch.
/// False if the graph has more than kernels, copies, fills, empty nodes and plain edges, or has launch attributes:
/// drivers check clusters and cooperation only at the launch.
[[nodiscard]] bool can_launch_one_by_one(const RawGraph& graph) noexcept;

/// Checks all nodes first (Stream::check), so that no foreseeable error stops it half way, then enqueues them.
/// unsupported: can_launch_one_by_one() is false, or the backend cannot check. not_recordable: the stream captures.
/// partly_launched: as for GraphExec::launch. After other errors nothing is enqueued.
[[nodiscard]] Result<void> launch_one_by_one(Stream& stream, const RawGraph& graph) noexcept;

} // namespace warmgraph::backends
