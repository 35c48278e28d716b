// The counters of one cache in this process.
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "warmgraph/cachefmt/key.hpp"
#include "warmgraph/store/miss.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// Counts hits, misses and faults of a cache in this process. Among the kinds of artifacts, it counts only entries.
/// Thread-safe.
class Counters {
public:
    /// `hits`: 0 if another hit already counts for the same entry.
    void hit(double load_ms, double answer_ms, std::uint64_t hits = 1);
    void miss(const std::string& function, const std::string& reason);
    /// `ms`: time of the recording, after the call's own result. `recordings`: 0 for one half of a pair, because the
    /// other half counts.
    void recording(double ms, std::uint64_t recordings = 1);
    void refusal(std::uint64_t calls = 1);
    void cache_fault();
    void capture_written();
    void captures_read(std::uint64_t paired, std::uint64_t ignored);
    /// Counts a recording that a caller refused, by function and reason. Returns the miss with the number of such
    /// refusals so far; this miss replaces an earlier miss of the same kind.
    [[nodiscard]] store::Miss refused_by_caller(const std::string& function, Policy policy, const Refusal& refusal);
    /// Counts an entry that is not trusted, each entry only once. Returns false if it was counted before.
    bool untrusted(const cachefmt::EntryKey& entry);
    [[nodiscard]] Statistics snapshot() const;

private:
    static constexpr std::size_t k_most_reasons = 64;
    mutable std::mutex m_mutex;
    Statistics m_statistics;
    KindStatistics m_entries;
    std::set<cachefmt::EntryKey> m_untrusted;
    std::map<std::pair<std::string, std::string>, store::Miss> m_refused_by_callers;
};

} // namespace warmgraph
