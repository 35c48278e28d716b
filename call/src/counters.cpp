#include "warmgraph/call/counters.hpp"

namespace warmgraph {

void Counters::hit(double load_ms, double answer_ms, std::uint64_t hits)
{
    const std::scoped_lock lock{m_mutex};
    m_statistics.hits += hits;
    m_statistics.load_ms += load_ms;
    m_statistics.saved_ms += answer_ms - load_ms;
}

void Counters::miss(const std::string& function, const std::string& reason)
{
    const std::scoped_lock lock{m_mutex};
    ++m_statistics.misses;
    if (m_statistics.miss_reasons.size() < k_most_reasons)
        m_statistics.miss_reasons.push_back(function + ": " + reason);
}

void Counters::recording()
{
    const std::scoped_lock lock{m_mutex};
    ++m_statistics.recordings;
}

void Counters::refusal(std::uint64_t calls)
{
    const std::scoped_lock lock{m_mutex};
    m_statistics.refusals += calls;
}

void Counters::cache_fault()
{
    const std::scoped_lock lock{m_mutex};
    ++m_statistics.cache_faults;
}

void Counters::capture_written()
{
    const std::scoped_lock lock{m_mutex};
    ++m_statistics.captures_written;
}

void Counters::captures_read(std::uint64_t paired, std::uint64_t ignored)
{
    const std::scoped_lock lock{m_mutex};
    m_statistics.captures_paired += paired;
    m_statistics.captures_ignored += ignored;
}

bool Counters::untrusted(const cachefmt::EntryKey& entry)
{
    const std::scoped_lock lock{m_mutex};
    if (!m_untrusted.insert(entry).second) return false;
    ++m_statistics.untrusted;
    return true;
}

Statistics Counters::snapshot() const
{
    const std::scoped_lock lock{m_mutex};
    return m_statistics;
}

} // namespace warmgraph
