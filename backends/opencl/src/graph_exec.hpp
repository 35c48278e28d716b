#pragma once

#include <optional>

#include "core.hpp"
#include "lane_plan.hpp"
#include "replay_node.hpp"
#include "warmgraph/backends/device.hpp"

namespace warmgraph::backends::opencl {

/// Enqueues the graph's work at every launch, or a command buffer while the arguments do not change.
class OpenclGraphExec final : public GraphExec {
public:
    [[nodiscard]] static Result<std::unique_ptr<GraphExec>> make(Core& core, std::vector<ReplayNode> nodes,
                                                                 LanePlan plan);

    [[nodiscard]] Result<void> launch(Stream& stream) noexcept override;
    [[nodiscard]] Result<void> update(std::uint32_t node, const RawWork& work) noexcept override;

private:
    OpenclGraphExec(Core& core, std::vector<ReplayNode> nodes, LanePlan plan)
        : m_core(core), m_nodes(std::move(nodes)), m_plan(std::move(plan))
    {
    }
    [[nodiscard]] Result<void> prepare_lanes();
    [[nodiscard]] Result<void> prepare_command_buffer();
    [[nodiscard]] Result<void> launch_in(cl_command_queue queue);
    [[nodiscard]] Result<void> launch_line(cl_command_queue queue);
    [[nodiscard]] Result<void> launch_lanes(cl_command_queue queue);
    [[nodiscard]] Result<void> launch_step(std::uint32_t node, cl_command_queue queue);
    [[nodiscard]] cl_command_queue lane(std::uint32_t index, cl_command_queue first) const noexcept;

    Core& m_core;
    std::vector<ReplayNode> m_nodes;
    LanePlan m_plan;
    std::vector<Queue> m_queues;       ///< the queues of lanes 1, 2, ...
    std::vector<DriverEvent> m_events; ///< the events of nodes while lanes are being enqueued, by node
    std::vector<cl_event> m_waits;     ///< reused storage
    DriverEvent m_start;
    std::size_t m_enqueued = 0; ///< nodes that a failed launch had enqueued

    // Recording costs more than enqueuing once. So the launch after an update enqueues, and the buffer is recorded
    // again only if a second launch has the same arguments.
    enum class BufferState { current, outdated, updated_just_now };
    std::optional<CommandBuffer> m_buffer;
    Queue m_recording_queue;
    BufferState m_buffer_state = BufferState::current;
};

} // namespace warmgraph::backends::opencl
