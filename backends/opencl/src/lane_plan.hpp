// Spreads a graph over in-order queues ("lanes"): a chain stays in one lane, a branch gets another, and edges between
// lanes become events.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace warmgraph::backends::opencl {

struct LaneStep {
    std::uint32_t lane = 0;           ///< lane 0 is the caller's stream
    bool waits_for_start = false;     ///< first node of another lane, without dependencies
    bool signals = false;             ///< another lane waits for this node
    std::vector<std::uint32_t> waits; ///< nodes of other lanes to wait for
};

struct LanePlan {
    std::uint32_t lanes = 1;
    std::vector<LaneStep> steps;       ///< one for each node, in the same order
    std::vector<std::uint32_t> joined; ///< nodes that lane 0 waits for at the end
    [[nodiscard]] bool is_linear() const noexcept { return lanes == 1; }
};

/// Further branches share these lanes, which is correct because nodes keep their topological order.
inline constexpr std::uint32_t k_max_lanes = 4;

/// `dependencies[i]` lists the nodes that node i depends on. REQUIRES: they are earlier nodes.
[[nodiscard]] LanePlan plan_lanes(std::span<const std::vector<std::uint32_t>> dependencies);

} // namespace warmgraph::backends::opencl
