// How a graph is spread over in-order queues: a chain stays in one queue ("lane"), a branch gets another, and edges
// between lanes become events.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warmgraph::backends::opencl {

struct LaneStep {
    std::uint32_t lane = 0;           ///< 0 is the caller's stream
    bool waits_for_start = false;     ///< first of another lane with nothing before it: after the stream's earlier work
    bool signals = false;             ///< some other lane waits for this node
    std::vector<std::uint32_t> waits; ///< nodes of other lanes
};

struct LanePlan {
    std::uint32_t lanes = 1;
    std::vector<LaneStep> steps;       ///< one for each node, in order
    std::vector<std::uint32_t> joined; ///< nodes that lane 0 waits for at the end
    [[nodiscard]] bool is_linear() const noexcept { return lanes == 1; }
};

/// More branches than lanes share them: the extra order does no harm, for nodes keep their topological order.
inline constexpr std::uint32_t k_max_lanes = 4;

/// `dependencies`: of each node. REQUIRES: they name earlier nodes.
[[nodiscard]] LanePlan plan_lanes(std::span<const std::vector<std::uint32_t>> dependencies);

} // namespace warmgraph::backends::opencl
