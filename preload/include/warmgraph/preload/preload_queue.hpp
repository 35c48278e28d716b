// The threads of a cache that restore entries before their calls.
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

/// One call of Cache::preload: how far it is, and who is told. Thread-safe.
class PreloadRequest {
public:
    using Progress = std::function<void(const PreloadProgress&)>;
    /// `threads`: as many of its tasks run at once.
    PreloadRequest(Progress progress, std::size_t threads);

    [[nodiscard]] PreloadProgress progress() const;
    void add_to_total(std::size_t entries);
    /// Counts an entry, and tells the caller of it when the earlier reports were told; nobody waits for that once it is stopped.
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
    mutable std::mutex m_mutex; // guards the rest; taken after a queue's
    std::condition_variable_any m_changed;
    PreloadProgress m_state;
    bool m_is_reporting = false; ///< the caller's function runs
    std::size_t m_left = 0;      ///< tasks that did not end
    std::vector<std::thread::id> m_running{};
};

/// Ends before its cache does, and before the process exits. Thread-safe.
class PreloadQueue {
public:
    using Request = std::shared_ptr<PreloadRequest>;
    using Task = std::function<void(const std::stop_token& stop)>;

    PreloadQueue();
    PreloadQueue(const PreloadQueue&) = delete;
    PreloadQueue& operator=(const PreloadQueue&) = delete;
    ~PreloadQueue();

    /// They begin in this order. Where the system gives no thread at all they run here, or are dropped with `is_needed` false.
    void add(const Request& request, std::vector<Task> tasks, bool is_needed);
    /// The request's tasks that did not begin are dropped; returns when the others ended, but for one that calls this.
    static void stop(PreloadRequest& request);

private:
    struct State;
    std::shared_ptr<State> m_state; ///< a thread may be what destroys the cache
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
