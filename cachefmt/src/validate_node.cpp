#include "validate_node.hpp"

#include <algorithm>

namespace warmgraph::cachefmt {
namespace {

constexpr std::size_t k_host_name_max = 255;

struct NodeCheck {
    const Graph& graph;
    const Limits& limits;

    Result<void> operator()(const EmptyNode&) const { return {}; }
    Result<void> operator()(const KernelNode& kernel) const { return validate_kernel(kernel, graph, limits); }
    Result<void> operator()(const CopyNode& copy) const { return validate_copy(copy, graph); }
    Result<void> operator()(const FillNode& fill) const { return validate_fill(fill, graph); }
    Result<void> operator()(const EventRecordNode& record) const { return event(record.event); }
    Result<void> operator()(const EventWaitNode& wait) const { return event(wait.event); }
    Result<void> operator()(const HostNode& host) const
    {
        return validate_symbol("host function name", host.function, k_host_name_max);
    }
    Result<void> operator()(const MemoryOperationsNode& node) const { return validate_operations(node, graph, limits); }
    Result<void> operator()(const SemaphoresNode& node) const { return validate_semaphores(node, graph, limits); }

private:
    Result<void> event(std::uint32_t index) const
    {
        if (index >= graph.events.size())
            return fail(ErrorCode::corrupt, "event {} is out of range, the graph has {}", index, graph.events.size());
        return {};
    }
};

} // namespace

Result<void> validate_node(const Node& node, const Graph& graph, const Limits& limits)
{
    return std::visit(NodeCheck{graph, limits}, node);
}

Result<void> validate_symbol(std::string_view what, std::string_view name, std::size_t longest)
{
    if (name.empty() || name.size() > longest)
        return fail(ErrorCode::corrupt, "{} has {} bytes, expected 1 to {}", what, name.size(), longest);
    if (!std::ranges::all_of(name, [](char c) { return c >= 0x20 && c < 0x7F; }))
        return fail(ErrorCode::corrupt, "{} has unprintable bytes", what);
    return {};
}

} // namespace warmgraph::cachefmt
