// The counters of functions and kinds. They are collected in memory and written to usage.json by one writer at a time.
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
    /// `disk` must outlive this. `look`: extra work for the thread; returns true to be called again, and must not
    /// throw.
    explicit Usage(const Disk& disk, std::function<bool()> look = {}) : m_disk(disk), m_look(std::move(look)) {}
    Usage(const Usage&) = delete;
    Usage& operator=(const Usage&) = delete;
    /// Ends the writer thread and writes the pending counts. Must not run in a forked child: see LocalStore's
    /// destructor.
    ~Usage();

    /// Adds counts. `folder`: the folder of the counters (a function's or a kind's folder), relative to the root.
    void add(const Path& folder, const FunctionUsage& more) noexcept;
    void add_soon(const Path& folder, const FunctionUsage& more) noexcept;
    /// Starts the writer thread.
    void expect() noexcept;
    /// Makes the thread call `look` soon.
    void look_soon() noexcept;
    [[nodiscard]] FunctionUsage of(const Path& folder);

private:
    /// Merges into `m_pending`. REQUIRES: m_mutex is held.
    void note(const Path& folder, const FunctionUsage& more);
    /// Writes the pending counts. Returns how many folders another writer blocked. REQUIRES: this thread holds neither
    /// mutex.
    std::size_t write_pending();
    /// Starts the thread once. REQUIRES: m_mutex is held.
    void start_writer();
    /// Ends the writer thread and writes the remaining counts. Waits for other writers up to m_patience.
    void end() noexcept;
    void run_writer(const std::stop_token& stop) noexcept;

    const Disk& m_disk;
    const std::function<bool()> m_look;
    /// Held while counts move from `m_pending` to the disk, and while both are read, so that a reader misses none of
    /// them. Taken before m_mutex. add_soon never takes it, because it must not wait for a disk.
    std::mutex m_file_mutex;
    std::mutex m_mutex;
    std::map<Path, FunctionUsage> m_pending; ///< guarded by m_mutex: counts that are not on disk yet
    std::condition_variable_any m_noted;     ///< used with m_mutex
    bool m_write_soon = false;               ///< guarded by m_mutex: the thread has to write or to look
    bool m_is_exiting = false;               ///< guarded by m_mutex: the process exits, so no thread may start
    /// How long end() may still wait for other writers, at the exit and in the destructor together. Other writers hold
    /// the lock for well under a millisecond, unless they sleep or have a slow disk.
    std::chrono::milliseconds m_patience{100};
    std::jthread m_writer; ///< started by expect() or the first add_soon; ends before the members that it uses
    std::optional<ExitHook> m_end_writer; ///< made with m_writer
};

} // namespace warmgraph::store
