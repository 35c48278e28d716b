#include "graph_exec.hpp"

#include "enqueue.hpp"
#include "stream.hpp"

namespace warmgraph::backends::opencl {
namespace {

std::unexpected<Error> out_of_memory() noexcept
{
    return std::unexpected(Error{ErrorCode::out_of_memory, "no host memory"});
}

} // namespace

Result<std::unique_ptr<GraphExec>> OpenclGraphExec::make(Core& core, std::vector<ReplayNode> nodes, LanePlan plan)
{
    std::unique_ptr<OpenclGraphExec> exec(new OpenclGraphExec(core, std::move(nodes), std::move(plan)));
    auto prepared = exec->m_plan.is_linear() ? exec->prepare_command_buffer() : exec->prepare_lanes();
    if (!prepared) return std::unexpected(prepared.error());
    return exec;
}

Result<void> OpenclGraphExec::prepare_lanes()
{
    for (std::uint32_t lane = 1; lane < m_plan.lanes; ++lane) {
        auto queue = m_core.create_queue();
        if (!queue) return std::unexpected(queue.error());
        m_queues.push_back(std::move(*queue));
    }
    m_events.resize(m_nodes.size());
    m_waits.reserve(k_max_lanes + 1);
    return {};
}

Result<void> OpenclGraphExec::prepare_command_buffer()
{
    if (m_core.replay.mode != ReplayMode::command_buffer || m_nodes.empty()) return {};
    auto queue = m_core.create_queue();
    if (!queue) return std::unexpected(queue.error());
    m_recording_queue = std::move(*queue);
    auto buffer = CommandBuffer::record(*m_core.command_buffers, m_recording_queue.get(), m_nodes);
    if (!buffer) return within("record a command buffer", buffer.error());
    m_buffer.emplace(std::move(*buffer));
    return {};
}

Result<void> OpenclGraphExec::launch(Stream& stream) noexcept
try {
    auto* const ours = dynamic_cast<OpenclStream*>(&stream);
    if (ours == nullptr || &ours->core() != &m_core)
        return fail(ErrorCode::invalid_argument, "launch of a graph in a stream of another device");
    if (ours->is_capturing()) return fail(ErrorCode::not_recordable, "launch of a graph in a stream that captures");
    m_enqueued = 0;
    auto launched = launch_in(ours->queue());
    if (!launched && m_enqueued > 0) launched.error().code = ErrorCode::partly_launched;
    return launched;
} catch (...) {
    return out_of_memory();
}

Result<void> OpenclGraphExec::launch_in(cl_command_queue queue)
{
    if (!m_plan.is_linear()) return launch_lanes(queue);
    if (!m_buffer) return launch_line(queue);
    if (m_buffer_state == BufferState::updated_just_now) {
        m_buffer_state = BufferState::outdated;
        return launch_line(queue);
    }
    if (m_buffer_state == BufferState::outdated) {
        auto buffer = CommandBuffer::record(*m_core.command_buffers, m_recording_queue.get(), m_nodes);
        if (!buffer) return std::unexpected(buffer.error());
        m_buffer = std::move(*buffer);
        m_buffer_state = BufferState::current;
    }
    const auto enqueued = m_buffer->enqueue(queue);
    if (!enqueued) return std::unexpected(enqueued.error());
    return *enqueued ? Result<void>{} : launch_line(queue);
}

Result<void> OpenclGraphExec::launch_line(cl_command_queue queue)
{
    for (std::size_t index = 0; index < m_nodes.size(); ++index) {
        if (auto enqueued = m_nodes[index].enqueue(queue, {}, nullptr); !enqueued) [[unlikely]] {
            m_enqueued = index;
            return within(fmt::format("node {} of {}", index, m_nodes.size()), enqueued.error());
        }
    }
    return {};
}

cl_command_queue OpenclGraphExec::lane(std::uint32_t index, cl_command_queue first) const noexcept
{
    return index == 0 ? first : m_queues[index - 1].get();
}

Result<void> OpenclGraphExec::launch_step(std::uint32_t node, cl_command_queue queue)
{
    const LaneStep& step = m_plan.steps[node];
    m_waits.clear();
    if (step.waits_for_start) m_waits.push_back(m_start.get());
    for (const std::uint32_t before : step.waits) m_waits.push_back(m_events[before].get());
    cl_event event = nullptr;
    auto enqueued = m_nodes[node].enqueue(lane(step.lane, queue), m_waits, step.signals ? &event : nullptr);
    if (!enqueued) return within(fmt::format("node {} of {}", node, m_nodes.size()), enqueued.error());
    m_events[node] = DriverEvent(event);
    // A queue may wait for another queue's event only after that queue was flushed (OpenCL 1.2, clFlush).
    return step.signals ? call("clFlush", driver().clFlush, lane(step.lane, queue)) : Result<void>{};
}

Result<void> OpenclGraphExec::launch_lanes(cl_command_queue queue)
{
    auto start = enqueue_marker(queue);
    if (!start) return std::unexpected(start.error());
    m_start = std::move(*start);
    if (auto flushed = call("clFlush", driver().clFlush, queue); !flushed) return flushed;
    for (std::uint32_t node = 0; node < m_nodes.size(); ++node) {
        if (auto launched = launch_step(node, queue); !launched) {
            // After a failure nothing else waits for the other lanes, so wait for them here.
            for (const Queue& other : m_queues) static_cast<void>(call("clFinish", driver().clFinish, other.get()));
            return launched;
        }
        ++m_enqueued;
    }
    if (m_plan.joined.empty()) return {};
    m_waits.clear();
    for (const std::uint32_t node : m_plan.joined) m_waits.push_back(m_events[node].get());
    return enqueue_barrier(queue, m_waits);
}

Result<void> OpenclGraphExec::update(std::uint32_t node, const RawWork& work) noexcept
try {
    if (node >= m_nodes.size())
        return fail(ErrorCode::invalid_argument, "update of node {}, the graph has {}", node, m_nodes.size());
    m_buffer_state = BufferState::updated_just_now;
    return m_nodes[node].update(work, m_core.memory);
} catch (...) {
    return out_of_memory();
}

} // namespace warmgraph::backends::opencl
