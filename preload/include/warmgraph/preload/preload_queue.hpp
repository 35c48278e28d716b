// A cache's threads that restore entries before their calls.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include <sys/types.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/preload.hpp"

namespace warmgraph {

/// One call of Cache::preload: its progress, and the caller's progress function. Thread-safe.
class PreloadRequest {
public:
    using Progress = std::function<void(const PreloadProgress&)>;
    /// `threads`: how many tasks of this request may run at once.
    PreloadRequest(Progress progress, std::size_t threads);

    [[nodiscard]] PreloadProgress progress() const;
    void add_to_total(std::size_t entries);
    /// Counts an entry and calls the progress function, after earlier reports are done. Stopping the request ends the
    /// wait for these reports.
    void report(const std::string& function, const std::function<void(PreloadProgress&)>& count) noexcept;
    [[nodiscard]] std::stop_token stop_token() const noexcept { return m_stop.get_token(); }
    /// Blocks until all tasks ended.
    void wait();

private:
    friend class PreloadQueue;
    const Progress m_progress;
    const std::size_t m_threads;
    const std::chrono::steady_clock::time_point m_started;
    std::stop_source m_stop;
    mutable std::mutex m_mutex; // guards the other members; locked after a queue's mutex
    std::condition_variable_any m_changed;
    PreloadProgress m_state;
    bool m_is_reporting = false; ///< whether the caller's progress function runs
    std::size_t m_left = 0;      ///< number of tasks that have not ended
    std::vector<std::thread::id> m_running{};
};

/// The queue must be destroyed before its cache, and before the process exits. Thread-safe.
class PreloadQueue {
public:
    using Request = std::shared_ptr<PreloadRequest>;
    using Task = std::function<void(const std::stop_token& stop)>;

    PreloadQueue();
    PreloadQueue(const PreloadQueue&) = delete;
    PreloadQueue& operator=(const PreloadQueue&) = delete;
    ~PreloadQueue();

    /// Begins the tasks in this order. If no thread can start, runs them in the calling thread, or drops them if
    /// `is_needed` is false.
    void add(const Request& request, std::vector<Task> tasks, bool is_needed);
    /// Drops the request's tasks that did not begin. Waits for the other tasks, except for a task that itself calls
    /// this function.
    static void stop(PreloadRequest& request);

private:
    struct State;
    std::shared_ptr<State> m_state; ///< shared, because one of the threads may destroy the cache
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
