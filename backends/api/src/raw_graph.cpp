#include "warmgraph/backends/raw_graph.hpp"

#include <algorithm>
#include <array>
#include <string_view>

namespace warmgraph::backends {
namespace {

bool is_wait(const RawMemoryOperation& operation) noexcept
{
    return operation.kind == MemoryOperationKind::wait_32 || operation.kind == MemoryOperationKind::wait_64;
}

/// NCCL's kernels up to 2.18, since 2.19, and the symmetric ones since 2.27.
constexpr std::array<std::string_view, 4> k_collectives{"ncclKernel", "ncclDevKernel", "ncclSymDevKernel",
                                                        "ncclSymkDevKernel"};

/// Mangled, a name has its length before it ("_Z30ncclDevKernel_AllReduce..."). Elsewhere in a name it is another's.
bool is_collective(std::string_view kernel) noexcept
{
    return std::ranges::any_of(k_collectives, [&](std::string_view prefix) {
        const std::size_t at = kernel.find(prefix);
        if (at == std::string_view::npos) return false;
        const bool is_mangled = kernel.starts_with("_Z") && at > 0 && kernel[at - 1] >= '0' && kernel[at - 1] <= '9';
        return at == 0 || is_mangled;
    });
}

/// The driver's own graph is another one from then on.
void replace(RawGraph& graph, RawNode& node, RawWork work)
{
    node.work = std::move(work);
    graph.native.reset();
}

} // namespace

bool has_semaphores(const RawGraph& graph) noexcept
{
    return std::ranges::any_of(graph.nodes,
                               [](const RawNode& node) { return std::holds_alternative<RawSemaphores>(node.work); });
}

RawGraph without_semaphores(RawGraph graph)
{
    for (RawNode& node : graph.nodes)
        if (std::holds_alternative<RawSemaphores>(node.work)) replace(graph, node, RawEmpty{});
    return graph;
}

bool has_outside_work(const RawGraph& graph) noexcept
{
    return std::ranges::any_of(graph.nodes, [](const RawNode& node) {
        const auto* const batch = std::get_if<RawMemoryOperations>(&node.work);
        return kind_of(node.work).is_outside || (batch != nullptr && std::ranges::any_of(batch->operations, is_wait));
    });
}

RawGraph without_outside(RawGraph graph)
{
    for (RawNode& node : graph.nodes) {
        if (kind_of(node.work).is_outside) replace(graph, node, RawEmpty{});
        auto* const batch = std::get_if<RawMemoryOperations>(&node.work);
        if (batch == nullptr || std::erase_if(batch->operations, is_wait) == 0) continue;
        graph.native.reset();
        if (batch->operations.empty()) node.work = RawEmpty{};
    }
    return graph;
}

bool has_collectives(const RawGraph& graph) noexcept
{
    return std::ranges::any_of(graph.nodes, [](const RawNode& node) {
        const auto* const kernel = std::get_if<RawKernel>(&node.work);
        return kernel != nullptr && is_collective(kernel->kernel);
    });
}

} // namespace warmgraph::backends
