#include "warmgraph/backends/one_by_one.hpp"

#include <algorithm>
#include <new>

#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends {

namespace {

bool is_plain(const RawNode& node) noexcept
{
    return std::ranges::all_of(node.edges, [](const EdgeData& data) { return data == EdgeData{}; });
}

bool can_enqueue(const RawWork& work) noexcept
{
    if (const auto* const kernel = std::get_if<RawKernel>(&work)) return kernel->attributes.empty();
    return std::holds_alternative<RawEmpty>(work) || std::holds_alternative<RawCopy>(work) ||
           std::holds_alternative<RawFill>(work);
}

Result<void> launch(Stream& stream, const RawGraph& graph)
{
    if (stream.is_capturing()) return fail(ErrorCode::not_recordable, "launch of a graph in a stream that captures");
    if (!can_launch_one_by_one(graph))
        return fail(ErrorCode::unsupported, "the graph has work that only an instantiated graph can do");
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        if (std::holds_alternative<RawEmpty>(graph.nodes[i].work)) continue;
        if (auto checked = stream.check(graph.nodes[i].work); !checked)
            return within(fmt::format("node {} of {}", i, graph.nodes.size()), checked.error());
    }
    bool has_begun = false;
    for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
        auto enqueued = stream.enqueue_checked(graph.nodes[i].work);
        if (!enqueued) {
            if (has_begun) enqueued.error().code = ErrorCode::partly_launched;
            return within(fmt::format("node {} of {}", i, graph.nodes.size()), enqueued.error());
        }
        has_begun = has_begun || !std::holds_alternative<RawEmpty>(graph.nodes[i].work);
    }
    return {};
}

} // namespace

bool can_launch_one_by_one(const RawGraph& graph) noexcept
{
    return std::ranges::all_of(graph.nodes,
                               [](const RawNode& node) { return is_plain(node) && can_enqueue(node.work); });
}

Result<void> launch_one_by_one(Stream& stream, const RawGraph& graph) noexcept
try {
    return launch(stream, graph);
} catch (const std::bad_alloc&) { // the number of enqueued nodes is not known here
    return std::unexpected(Error{ErrorCode::partly_launched, {}});
}

} // namespace warmgraph::backends
