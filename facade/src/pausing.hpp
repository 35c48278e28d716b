// When device code is not kept any more, because nothing is recorded: keeping it makes everybody's launches dearer.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "warmgraph/backends/recording.hpp"
#include "warmgraph/cachefmt/entry.hpp"
#include "warmgraph/store/local_store.hpp"

namespace warmgraph {

/// Counts the replays of one cache since its last miss. Thread-safe.
class QuietCalls {
public:
    /// True every so often: Cache::pause_recording may be tried.
    [[nodiscard]] bool note_replay() noexcept
    {
        return m_replays.fetch_add(1, std::memory_order_relaxed) % k_often == k_often - 1;
    }
    void note_miss() noexcept { m_replays.store(0, std::memory_order_relaxed); }

private:
    static constexpr std::uint32_t k_often = 256; ///< some seconds of a service's decode steps
    std::atomic<std::uint32_t> m_replays = 0;
};

/// Whether a recording was refused for code that was loaded during a pause.
[[nodiscard]] bool is_for_unkept_code(const Error& error) noexcept;

/// That a recording of this function was refused so, for the processes that come.
void note_unkept_code(store::LocalStore& store, const cachefmt::FunctionKey& function) noexcept;

/// Whether this process should keep code to its end, because an earlier one lost a recording of the function by not
/// doing so. Each such loss is made good once.
[[nodiscard]] bool keeps_code_for(store::LocalStore& store, const cachefmt::FunctionKey& function) noexcept;

/// What a profiler that was started with the process sets; it would lose its records.
[[nodiscard]] bool is_profiled();

} // namespace warmgraph
