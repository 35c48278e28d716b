#include "lane_plan.hpp"

#include <algorithm>
#include <array>

namespace warmgraph::backends::opencl {
namespace {

constexpr std::int64_t k_none = -1;

class Planner {
public:
    explicit Planner(std::span<const std::vector<std::uint32_t>> dependencies) : m_dependencies(dependencies)
    {
        m_tail.fill(k_none);
        for (auto& row : m_seen) row.fill(k_none);
        m_plan.steps.resize(dependencies.size());
    }

    LanePlan run()
    {
        for (std::uint32_t node = 0; node < m_dependencies.size(); ++node) place(node);
        for (std::uint32_t lane = 1; lane < m_plan.lanes; ++lane) {
            if (m_seen[0][lane] < m_tail[lane]) m_plan.joined.push_back(static_cast<std::uint32_t>(m_tail[lane]));
        }
        for (const std::uint32_t node : m_plan.joined) m_plan.steps[node].signals = true;
        return std::move(m_plan);
    }

private:
    void place(std::uint32_t node)
    {
        const auto& dependencies = m_dependencies[node];
        LaneStep& step = m_plan.steps[node];
        step.lane = lane_for(node, dependencies);
        step.waits_for_start = step.lane != 0 && dependencies.empty() && m_tail[step.lane] == k_none;
        // Waiting for a lane's latest node also covers that lane's earlier nodes.
        for (auto at = dependencies.rbegin(); at != dependencies.rend(); ++at) {
            const std::uint32_t other = m_plan.steps[*at].lane;
            if (other == step.lane || m_seen[step.lane][other] >= *at) continue;
            m_seen[step.lane][other] = *at;
            m_plan.steps[*at].signals = true;
            step.waits.push_back(*at);
        }
        m_tail[step.lane] = node;
    }

    std::uint32_t lane_for(std::uint32_t node, const std::vector<std::uint32_t>& dependencies)
    {
        for (std::uint32_t lane = 0; lane < m_plan.lanes; ++lane) {
            if (std::ranges::any_of(dependencies, [&](std::uint32_t before) { return m_tail[lane] == before; }))
                return lane;
        }
        if (m_tail[0] == k_none) return 0;
        return m_plan.lanes < k_max_lanes ? m_plan.lanes++ : node % k_max_lanes;
    }

    std::span<const std::vector<std::uint32_t>> m_dependencies;
    LanePlan m_plan;
    std::array<std::int64_t, k_max_lanes> m_tail{};
    /// [lane][other]: the latest node of `other` that `lane` has waited for.
    std::array<std::array<std::int64_t, k_max_lanes>, k_max_lanes> m_seen{};
};

} // namespace

LanePlan plan_lanes(std::span<const std::vector<std::uint32_t>> dependencies) { return Planner(dependencies).run(); }

} // namespace warmgraph::backends::opencl
