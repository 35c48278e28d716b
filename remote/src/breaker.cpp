#include "breaker.hpp"

#include <exception>
#include <utility>

#include <unistd.h>

#include "warmgraph/base/log.hpp"
#include "warmgraph/base/units.hpp"

namespace warmgraph::remote {

Breaker::Breaker(std::string label, std::chrono::milliseconds pause, std::function<Result<void>()> probe, Clock& clock)
    : m_label(std::move(label)), m_pause(pause), m_probe(std::move(probe)), m_clock(clock), m_process(::getpid())
{
}

Breaker::~Breaker()
{
    if (::getpid() == m_process)
        join();
    else if (m_thread.joinable())
        m_thread.detach();
}

void Breaker::join() noexcept
{
    std::thread ended;
    {
        const std::scoped_lock lock{m_mutex};
        m_is_ending = true;
        ended.swap(m_thread);
    }
    if (ended.joinable()) ended.join();
}

bool Breaker::may_ask() noexcept
try {
    const std::scoped_lock lock{m_mutex};
    if (!m_is_open) return true;
    ++m_skipped;
    if (m_clock.steady() >= m_again_at && !m_is_probing && !m_is_ending && ::getpid() == m_process) start_probe();
    return false;
} catch (const std::exception& error) { // no thread could be started
    log().debug("remote {} is not probed: {}", m_label, error.what());
    return false;
}

/// REQUIRES: m_mutex is held.
void Breaker::start_probe()
{
    if (m_thread.joinable()) m_thread.join(); // the earlier probe has ended
    m_thread = std::thread([this] { end_probe(m_probe()); });
    m_is_probing = true;
}

void Breaker::end_probe(const Result<void>& answer) noexcept
{
    const std::scoped_lock lock{m_mutex};
    m_is_probing = false;
    m_again_at = m_clock.steady() + m_pause;
    if (!answer) return;
    m_is_open = false;
    m_why.clear();
    log().info("remote {} answers again; {} went on without it", m_label,
               plural(m_skipped - std::exchange(m_skipped_before, m_skipped), "look-up"));
}

void Breaker::note_failure(const Error& error) noexcept
try {
    const std::scoped_lock lock{m_mutex};
    m_again_at = m_clock.steady() + m_pause;
    if (std::exchange(m_is_open, true)) return;
    m_why = error.message;
    log().warn("{}; it is not asked again for {} s", error.message,
               std::chrono::duration_cast<std::chrono::seconds>(m_pause).count());
} catch (const std::exception& failure) {
    log().debug("remote {}: {}", m_label, failure.what());
}

std::uint64_t Breaker::skipped() const noexcept
{
    const std::scoped_lock lock{m_mutex};
    return m_skipped;
}

std::string Breaker::why_open() const
{
    const std::scoped_lock lock{m_mutex};
    return m_is_open ? m_why : std::string();
}

} // namespace warmgraph::remote
