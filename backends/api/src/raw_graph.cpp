#include "warmgraph/backends/raw_graph.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

namespace warmgraph::backends {
namespace {

bool is_wait(const RawMemoryOperation& operation) noexcept
{
    return operation.kind == MemoryOperationKind::wait_32 || operation.kind == MemoryOperationKind::wait_64;
}

/// Prefixes of the names of NCCL's kernels: in versions up to 2.18, since 2.19, and for symmetric memory since 2.27.
constexpr std::array<std::string_view, 4> k_collectives{"ncclKernel", "ncclDevKernel", "ncclSymDevKernel",
                                                        "ncclSymkDevKernel"};

/// True if one of the prefixes begins the name, or follows a length as in mangled names
/// ("_Z30ncclDevKernel_AllReduce...").
bool is_collective(std::string_view kernel) noexcept
{
    return std::ranges::any_of(k_collectives, [&](std::string_view prefix) {
        const std::size_t at = kernel.find(prefix);
        if (at == std::string_view::npos) return false;
        const bool is_mangled = kernel.starts_with("_Z") && at > 0 && kernel[at - 1] >= '0' && kernel[at - 1] <= '9';
        return at == 0 || is_mangled;
    });
}

/// Replaces a node's work and drops the driver's own graph, which no longer matches.
void replace(RawGraph& graph, RawNode& node, RawWork work)
{
    node.work = std::move(work);
    graph.native.reset();
}

} // namespace

std::vector<RawAllocation> merged(const std::vector<RawAllocation>& made)
{
    struct Range {
        std::size_t first = 0; ///< index of the first allocation in this range
        std::uint64_t start = 0, end = 0;
    };
    std::vector<Range> ranges;
    for (std::size_t i = 0; i < made.size(); ++i) {
        const MemoryRef& memory = made[i].memory;
        ranges.push_back({i, memory.address.flat(), memory.address.flat() + memory.size});
    }
    std::ranges::sort(ranges, {}, &Range::start);
    std::vector<Range> joined;
    for (const Range& range : ranges) {
        if (joined.empty() || joined.back().end <= range.start) {
            joined.push_back(range);
            continue;
        }
        joined.back().first = std::min(joined.back().first, range.first);
        joined.back().end = std::max(joined.back().end, range.end);
    }
    std::ranges::sort(joined, {}, &Range::first);
    std::vector<RawAllocation> result;
    for (const Range& range : joined) result.push_back({{Address::from_flat(range.start), range.end - range.start}});
    return result;
}

RawCopy canonical(RawCopy copy) noexcept
{
    const auto in_both = [&copy](const auto& is_so) {
        return is_so(copy.source_pitch) && is_so(copy.destination_pitch);
    };
    if (copy.slices > 1 && in_both([&](const Pitch& pitch) { return pitch.slice == pitch.row * copy.rows; })) {
        copy.rows *= std::exchange(copy.slices, 1);
        copy.source_pitch.slice = copy.destination_pitch.slice = 0;
    }
    if (copy.slices == 1 && copy.rows > 1 && in_both([&](const Pitch& pitch) { return pitch.row == copy.size; })) {
        copy.size *= std::exchange(copy.rows, 1);
        copy.source_pitch = copy.destination_pitch = {};
    }
    return copy;
}

RawFill canonical(RawFill fill)
{
    fill.pattern.resize(period(fill.pattern));
    if (fill.rows > 1 && fill.pitch == fill.size) {
        fill.size *= std::exchange(fill.rows, 1);
        fill.pitch = 0;
    }
    return fill;
}

std::size_t period(ByteView pattern) noexcept
{
    std::size_t width = pattern.size();
    while (width > 1 && width % 2 == 0 &&
           std::ranges::equal(pattern.first(width / 2), pattern.subspan(width / 2, width / 2)))
        width /= 2;
    return width;
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
