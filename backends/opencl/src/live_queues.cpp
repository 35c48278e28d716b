#include "live_queues.hpp"

namespace warmgraph::backends::opencl {

LiveQueues& LiveQueues::instance()
{
    static LiveQueues& queues = *new LiveQueues; // never destroyed: a stream may outlive static objects
    return queues;
}

void LiveQueues::add(cl_command_queue queue)
{
    const std::scoped_lock lock(m_mutex);
    m_queues.insert(queue);
}

void LiveQueues::remove(cl_command_queue queue) noexcept
{
    // A failure cannot be reported here; callers check their work with synchronize().
    if (::getpid() == m_process) static_cast<void>(call("clFinish", driver().clFinish, queue));
    const std::scoped_lock lock(m_mutex);
    m_queues.erase(queue);
}

void LiveQueues::finish_all() noexcept
{
    if (::getpid() != m_process) return;
    const std::scoped_lock lock(m_mutex);
    for (const cl_command_queue queue : m_queues) static_cast<void>(call("clFinish", driver().clFinish, queue));
}

} // namespace warmgraph::backends::opencl
