// What one cache counted in this process.
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

/// Counters of one process: of the kinds, entries alone. Thread-safe.
class Counters {
public:
    /// `hits`: 0 for what another hit stands for, too.
    void hit(double load_ms, double answer_ms, std::uint64_t hits = 1);
    void miss(const std::string& function, const std::string& reason);
    /// `ms`: that recording took, after the call's own result. `recordings`: 0 for a half of a pair whose other half
    /// counts.
    void recording(double ms, std::uint64_t recordings = 1);
    void refusal(std::uint64_t calls = 1);
    void cache_fault();
    void capture_written();
    void captures_read(std::uint64_t paired, std::uint64_t ignored);
    /// What a caller refused to have recorded, by function and reason. The miss of both so far; one that says the same as an
    /// earlier one takes its place.
    [[nodiscard]] store::Miss refused_by_caller(const std::string& function, Policy policy, const Refusal& refusal);
    /// Each entry is counted once, however often it is met. False where it was counted before.
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
