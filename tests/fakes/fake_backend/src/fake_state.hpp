// The faults, the call log and the counts. All objects of one fake backend share them.
#pragma once

#include <atomic>
#include <map>
#include <mutex>

#include "warmgraph/backends/fake.hpp"

namespace warmgraph::backends {

struct FakeState {
    FakeOptions options;
    std::atomic<std::int64_t> allocations = 0, modules = 0, streams = 0, execs = 0;

    /// Logs a call, and returns the injected failure if there is one. Every entry point calls this first.
    [[nodiscard]] Result<void> enter(const char* entry);

    void inject(Fault fault);
    void clear_faults();
    [[nodiscard]] std::vector<std::string> calls() const;
    [[nodiscard]] std::uint64_t call_count(std::string_view entry) const;
    void clear_calls();

private:
    mutable std::mutex m_mutex;
    std::vector<Fault> m_faults;
    std::vector<std::string> m_calls;
};

/// Counts one object as long as it lives.
class LiveCount {
public:
    explicit LiveCount(std::atomic<std::int64_t>& count) noexcept : m_count(count) { ++m_count; }
    LiveCount(const LiveCount&) = delete;
    LiveCount& operator=(const LiveCount&) = delete;
    ~LiveCount() { --m_count; }

private:
    std::atomic<std::int64_t>& m_count;
};

} // namespace warmgraph::backends
