// The counters of functions and kinds, beside what they count: noted in memory, written by one writer at a time.
#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "tiers/local/disk.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::store {

/// Thread-safe. Best effort: a failure is swallowed here.
class Usage {
public:
    /// `disk` must outlive it. `look`: what the thread looks at besides: true where it has to look again. It must not throw.
    explicit Usage(const Disk& disk, std::function<bool()> look = {}) : m_disk(disk), m_look(std::move(look)) {}
    Usage(const Usage&) = delete;
    Usage& operator=(const Usage&) = delete;
    /// Ends the writer thread and writes what is pending. Not in a forked child: see LocalStore's destructor.
    ~Usage();

    /// `folder`: in which the counters lie, relative to the root: a function's, or a kind's.
    void add(const Path& folder, const FunctionUsage& more) noexcept;
    void add_soon(const Path& folder, const FunctionUsage& more) noexcept;
    /// Begins the writer's thread.
    void expect() noexcept;
    /// There is something to look at.
    void look_soon() noexcept;
    [[nodiscard]] FunctionUsage of(const Path& folder);

private:
    /// Merges into `m_pending`. REQUIRES: m_mutex is held.
    void note(const Path& folder, const FunctionUsage& more);
    /// Returns for how many folders another writer was in the way. REQUIRES: neither mutex is held.
    std::size_t write_pending();
    /// Once. REQUIRES: m_mutex is held.
    void start_writer();
    /// Ends the writer thread and writes what it left. Waits for other writers as long as m_patience lasts.
    void end() noexcept;
    /// The writer thread's loop.
    void run_writer(const std::stop_token& stop) noexcept;

    const Disk& m_disk;
    const std::function<bool()> m_look;
    /// Held while usage moves from `m_pending` to the disk and by whoever asks for both, so that nothing is between them
    /// unseen. Taken before m_mutex; never by add_soon, which waits for no disk.
    std::mutex m_file_mutex;
    std::mutex m_mutex;
    std::map<Path, FunctionUsage> m_pending; ///< guarded by m_mutex: usage that is not on disk yet
    std::condition_variable_any m_noted;     ///< with m_mutex
    bool m_write_soon = false;               ///< guarded by m_mutex: work for the thread below, or something to look at
    bool m_is_exiting = false;               ///< guarded by m_mutex: the process is; no thread any more
    /// What end() may still wait, at the exit and in the destructor together. Others hold the lock for well under a
    /// millisecond; who sleeps with it, or whose disk is slow, costs no more than this.
    std::chrono::milliseconds m_patience{100};
    std::jthread m_writer;                ///< made by expect(), or the first add_soon; ends before what it uses
    std::optional<ExitHook> m_end_writer; ///< made with it
};

} // namespace warmgraph::store
