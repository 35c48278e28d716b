// Stops asking a store that does not answer, so that a dead one costs one failure and not one for each look-up.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>

#include <sys/types.h>

#include "warmgraph/base/clock.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::remote {

/// Closed: calls go through. A failure opens it for `pause`; calls then go on without the store. After the pause the next
/// call starts one probe in a thread of its own, and itself does not wait: a probe that works closes the breaker again.
/// Thread-safe. `probe` must not throw; it runs at most once at a time.
class Breaker {
public:
    Breaker(std::string label, std::chrono::milliseconds pause, std::function<Result<void>()> probe, Clock& clock);
    Breaker(const Breaker&) = delete;
    Breaker& operator=(const Breaker&) = delete;
    ~Breaker();

    /// Whether the store may be asked now.
    [[nodiscard]] bool may_ask() noexcept;
    /// Opens the breaker, with one warning for each series of failures.
    void note_failure(const Error& error) noexcept;
    /// Calls that went on without the store.
    [[nodiscard]] std::uint64_t skipped() const noexcept;
    /// The failure that opened the breaker; "" while it is closed.
    [[nodiscard]] std::string why_open() const;

private:
    void start_probe();
    void end_probe(const Result<void>& answer) noexcept;
    void join() noexcept;

    const std::string m_label;
    const std::chrono::milliseconds m_pause;
    const std::function<Result<void>()> m_probe;
    Clock& m_clock;
    mutable std::mutex m_mutex;
    bool m_is_open = false;                             ///< guarded by m_mutex, like all below
    std::chrono::steady_clock::time_point m_again_at{}; ///< when a probe may start
    std::string m_why;
    std::uint64_t m_skipped = 0, m_skipped_before = 0; ///< all; those of earlier series
    bool m_is_probing = false, m_is_ending = false;
    std::thread m_thread;
    ExitHook m_at_exit{[this] { join(); }};
    pid_t m_process; ///< a forked child has no thread of its parent
};

} // namespace warmgraph::remote
