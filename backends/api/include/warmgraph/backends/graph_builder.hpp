// A graph that is put together node by node.
#pragma once

#include <memory>

#include "warmgraph/backends/raw_graph.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::backends {

class GraphExec;

/// Used by one thread, the one that asked for it. After an error it is only good for being destroyed.
class GraphBuilder {
public:
    virtual ~GraphBuilder() = default;
    /// Appends a node, which must stay as it is until the builder goes. invalid_argument: it depends on a node that was
    /// not added before it, or the device cannot hold it as it is.
    [[nodiscard]] virtual Result<void> add(const RawNode& node) = 0;
    /// Once, after the last node.
    [[nodiscard]] virtual Result<std::unique_ptr<GraphExec>> instantiate() = 0;
};

} // namespace warmgraph::backends
