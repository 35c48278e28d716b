// Builds a graph node by node.
#pragma once

#include <memory>

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

class GraphExec;

/// Only the thread that asked for the builder may use it. After an error the builder can only be destroyed.
class GraphBuilder {
public:
    virtual ~GraphBuilder() = default;
    /// Appends a node, which must not change until the builder is destroyed. invalid_argument: the node depends on a
    /// node that was not added before it, or the device does not support the node.
    [[nodiscard]] virtual Result<void> add(const RawNode& node) = 0;
    /// Call it once, after the last node.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphExec>> instantiate() = 0;
};

} // namespace warmgraph::backends
