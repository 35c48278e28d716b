#include "warmgraph/backends/memory_tally.hpp"

#include <algorithm>

namespace warmgraph::backends {

void MemoryTally::change(std::int64_t bytes) noexcept
{
    const std::scoped_lock lock(m_mutex);
    for (Watch* watch = m_first; watch != nullptr; watch = watch->m_next) {
        watch->m_now += bytes;
        watch->m_peak = std::max(watch->m_peak, watch->m_now);
    }
}

void MemoryTally::Watch::resume() noexcept
{
    const std::scoped_lock lock(m_tally->m_mutex);
    if (m_is_running) return;
    m_is_running = true;
    m_next = m_tally->m_first;
    m_tally->m_first = this;
}

void MemoryTally::Watch::pause() noexcept
{
    const std::scoped_lock lock(m_tally->m_mutex);
    if (!m_is_running) return;
    m_is_running = false;
    Watch** link = &m_tally->m_first;
    while (*link != this) link = &(*link)->m_next;
    *link = m_next;
}

std::uint64_t MemoryTally::Watch::peak() const noexcept
{
    const std::scoped_lock lock(m_tally->m_mutex);
    return static_cast<std::uint64_t>(m_peak);
}

} // namespace warmgraph::backends
