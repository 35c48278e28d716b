#include "warmgraph/call/counters.hpp"

namespace warmgraph {

void Counters::hit(double load_ms, double answer_ms, std::uint64_t hits)
{
    const std::scoped_lock lock{m_mutex};
    m_entries.hits += hits;
    m_entries.load_ms += load_ms;
    m_entries.saved_ms += answer_ms - load_ms;
}

void Counters::miss(const std::string& function, const std::string& reason)
{
    const std::scoped_lock lock{m_mutex};
    ++m_entries.misses;
    if (m_entries.miss_reasons.size() < k_most_reasons) m_entries.miss_reasons.push_back(function + ": " + reason);
}

void Counters::recording(double ms, std::uint64_t recordings)
{
    const std::scoped_lock lock{m_mutex};
    m_entries.made += recordings;
    m_entries.making_ms += ms;
}

void Counters::refusal(std::uint64_t calls)
{
    const std::scoped_lock lock{m_mutex};
    m_entries.refused += calls;
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
    Statistics now = m_statistics;
    now.kinds[ArtifactKind::entries] = m_entries;
    return now;
}

} // namespace warmgraph
