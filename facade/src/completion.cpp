#include "completion.hpp"

#include <exception>

#include <unistd.h>

#include "warmgraph/base/log.hpp"

namespace warmgraph {

void Completion::begin(std::function<void(const std::stop_token&)> work) noexcept
try {
    if (m_is_working || (m_thread.joinable() && m_process != ::getpid())) return;
    if (!m_at_exit) m_at_exit.emplace([this] { end(); });
    m_process = ::getpid();
    m_is_working = true;
    m_thread = std::jthread{[this, work = std::move(work)](const std::stop_token& stop) { // the last one is done
        work(stop);
        m_is_working = false;
    }};
} catch (const std::exception& thrown) { // no thread, no memory
    m_is_working = false;
    log().debug("a graph is instantiated by its second launch: {}", thrown.what());
}

void Completion::end() noexcept
{
    if (!m_thread.joinable()) return;
    m_thread.request_stop();
    if (m_process == ::getpid())
        m_thread.join();
    else
        m_thread.detach();
}

} // namespace warmgraph
