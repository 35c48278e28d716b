// Decides when to stop keeping device code because nothing is recorded any more. Keeping code makes all launches
// slower.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "warmgraph/backends/recording.hpp"
#include "warmgraph/base/clock.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// Counts the replays of one cache since its last miss. Thread-safe.
class RecordingPause {
public:
    explicit RecordingPause(const Clock& clock = system_clock()) : m_clock(clock) {}
    /// Counts a replay. Returns whether the cache should try to pause now: at each 256th replay in a row, and not within a
    /// minute of a miss, because a process that recorded something often records more.
    [[nodiscard]] bool note_replay() noexcept
    {
        if (m_replays.fetch_add(1, std::memory_order_relaxed) % k_often != k_often - 1) return false;
        return m_clock.steady().time_since_epoch() >= m_not_before.load(std::memory_order_relaxed);
    }
    void note_miss() noexcept
    {
        m_replays.store(0, std::memory_order_relaxed);
        m_not_before.store(m_clock.steady().time_since_epoch() + k_after_a_miss, std::memory_order_relaxed);
    }

    /// Keeps code until the process ends. Returns the first reason that was given. An empty `why` is not a reason: the
    /// call then only returns the reason so far.
    [[nodiscard]] std::string keep_code(std::string why)
    {
        const std::scoped_lock lock{m_mutex};
        if (m_why_code_is_kept.empty()) m_why_code_is_kept = std::move(why);
        return m_why_code_is_kept;
    }

private:
    /// Number of replays; a service makes this many decode steps in some seconds.
    static constexpr std::uint32_t k_often = 256;
    static constexpr std::chrono::seconds k_after_a_miss{60};
    const Clock& m_clock;
    std::mutex m_mutex; ///< guards the next member
    std::string m_why_code_is_kept;
    std::atomic<std::uint32_t> m_replays = 0;
    std::atomic<std::chrono::steady_clock::duration> m_not_before{std::chrono::steady_clock::duration::min()};
};

/// Whether a recording was refused because its code was loaded during a pause.
[[nodiscard]] bool is_for_unkept_code(const Error& error) noexcept;

/// Notes for later processes that a recording of this function was refused because its code was loaded during a pause.
void note_unkept_code(store::LocalStore& store, const cachefmt::FunctionKey& function) noexcept;

/// Whether this process should keep code until its end, because an earlier process lost a recording of the function
/// because it did not keep code. Each such loss counts once.
[[nodiscard]] bool keeps_code_for(store::LocalStore& store, const cachefmt::FunctionKey& function) noexcept;

} // namespace warmgraph
