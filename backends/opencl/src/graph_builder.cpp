#include "graph_builder.hpp"

#include "graph_exec.hpp"
#include "warmgraph/backends/work_checks.hpp"

namespace warmgraph::backends::opencl {

OpenclGraphBuilder::OpenclGraphBuilder(Core& core, std::size_t nodes) : m_core(core)
{
    m_nodes.reserve(nodes);
    m_dependencies.reserve(nodes);
}

Result<void> OpenclGraphBuilder::add(const RawNode& node)
{
    if (auto checked = check_order(node, m_nodes.size()); !checked) return checked;
    auto made = ReplayNode::make(node.work, m_core.limits, m_core.memory);
    if (!made) return within(fmt::format("instantiate node {}", m_nodes.size()), made.error());
    m_nodes.push_back(std::move(*made));
    m_dependencies.push_back(node.dependencies);
    return {};
}

Result<std::unique_ptr<GraphExec>> OpenclGraphBuilder::instantiate()
{
    return OpenclGraphExec::make(m_core, std::move(m_nodes), plan_lanes(m_dependencies));
}

} // namespace warmgraph::backends::opencl
