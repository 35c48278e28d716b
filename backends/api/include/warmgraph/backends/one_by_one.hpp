// A graph's work without an exec: what its first launch need not wait for.
#pragma once

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

class Stream;

/// Whether its nodes, enqueued in one stream in the graph's order, do what a launch of the graph does. Nodes are in
/// topological order, and a stream keeps it: what may run side by side in a graph need not. False where a node or an edge
/// says more: other work than kernels, copies, fills and empty nodes, programmatic edges, launch attributes (clusters and
/// cooperation are what drivers refuse at the launch alone).
[[nodiscard]] bool can_launch_one_by_one(const RawGraph& graph) noexcept;

/// Enqueues them, once all of them are checked (Stream::check): nothing that can be known beforehand ends it half way.
/// unsupported: the above says no, or the backend cannot check. not_recordable: the stream captures. partly_launched as
/// GraphExec::launch; other errors have enqueued nothing.
[[nodiscard]] Result<void> launch_one_by_one(Stream& stream, const RawGraph& graph) noexcept;

} // namespace warmgraph::backends
