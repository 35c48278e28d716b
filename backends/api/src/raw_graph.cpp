#include "warmgraph/backends/raw_graph.hpp"

#include <algorithm>

namespace warmgraph::backends {

bool has_semaphores(const RawGraph& graph) noexcept
{
    return std::ranges::any_of(graph.nodes,
                               [](const RawNode& node) { return std::holds_alternative<RawSemaphores>(node.work); });
}

RawGraph without_semaphores(RawGraph graph)
{
    for (RawNode& node : graph.nodes)
        if (std::holds_alternative<RawSemaphores>(node.work)) node.work = RawEmpty{};
    return graph;
}

} // namespace warmgraph::backends
