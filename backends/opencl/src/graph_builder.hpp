// Builds a graph as a list of the work that its launches enqueue.
#pragma once

#include <vector>

#include "core.hpp"
#include "replay_node.hpp"
#include "warmgraph/backends/graph_builder.hpp"

namespace warmgraph::backends::opencl {

class OpenclGraphBuilder final : public GraphBuilder {
public:
    OpenclGraphBuilder(Core& core, std::size_t nodes);
    [[nodiscard]] Result<void> add(const RawNode& node) override;
    [[nodiscard]] Result<std::unique_ptr<GraphExec>> instantiate() override;

private:
    Core& m_core;
    std::vector<ReplayNode> m_nodes;
    std::vector<std::vector<std::uint32_t>> m_dependencies; ///< the dependencies of each node
};

} // namespace warmgraph::backends::opencl
