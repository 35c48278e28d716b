// Cache::prefetch: device code that is loaded before anybody asks for it.
#pragma once

#include <atomic>
#include <chrono>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <sys/types.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/warmgraph.hpp"

namespace warmgraph {

/// The thread of one cache, which ends before it does and before the process exits. Thread-safe.
class Prefetching {
public:
    Prefetching() = default;
    Prefetching(const Prefetching&) = delete;
    Prefetching& operator=(const Prefetching&) = delete;
    ~Prefetching() { end(); }

    /// Once for each name (or beginning of names, as in Cache::prefetch) and device: what is loaded stays loaded as long
    /// as the cache. Again where graphs found no room the last time. One after the other, single functions first. `cache`
    /// outlives this.
    void begin(Cache::Impl& cache, const std::string& name, std::shared_ptr<Device::Impl> device);
    /// Until somebody begins anything, or for k_longest_pause: see Cache::pause_prefetch.
    void pause() noexcept;
    [[nodiscard]] bool is_paused() const noexcept;

private:
    static constexpr std::chrono::milliseconds k_longest_pause{100}; ///< who pauses may fail before he begins again
    struct Wanted {
        std::string name;
        std::shared_ptr<Device::Impl> device;
    };
    void end();
    void work(Cache::Impl& cache, const std::stop_token& stop) noexcept;
    [[nodiscard]] std::optional<Wanted> next(const std::stop_token& stop);
    void had_no_room(Wanted wanted);

    using Clock = std::chrono::steady_clock;
    std::atomic<Clock::rep> m_pause_end = 0; ///< of its epoch

    std::mutex m_mutex;                                          // guards the rest
    std::map<std::pair<std::string, const void*>, bool> m_begun; ///< whether it was asked for again meanwhile
    std::deque<Wanted> m_queue;
    bool m_is_working = false;
    std::jthread m_thread;
    pid_t m_process = 0; ///< that began it: a forked child has no such thread
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
