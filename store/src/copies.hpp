// Writes copies of a remote's objects into the folder, on a thread of its own: a start does not wait for its disk.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

#include <sys/types.h>

#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::store {

/// Thread-safe. Best effort: a copy that cannot be written is fetched again by the next process.
class Copies {
public:
    /// `write` runs on the thread, and must not throw.
    explicit Copies(std::function<void(const Name&, ByteView)> write);
    Copies(const Copies&) = delete;
    Copies& operator=(const Copies&) = delete;
    /// Writes what is left. Must not run in a forked child: see LocalStore's destructor.
    ~Copies() { end(); }

    /// Writes the copy soon; at once if the process ends, is a forked child, or has too many waiting already.
    void add(const Name& name, Bytes bytes);
    /// Waits until all copies are written.
    void wait();

private:
    struct Copy {
        Name name;
        Bytes bytes;
    };
    void run() noexcept;
    void end() noexcept;

    const std::function<void(const Name&, ByteView)> m_write;
    std::mutex m_mutex;
    std::condition_variable m_changed;
    std::deque<Copy> m_queue;    ///< guarded by m_mutex, like all below
    std::uint64_t m_waiting = 0; ///< bytes in the queue
    bool m_is_writing = false, m_is_ending = false;
    std::thread m_thread;
    std::optional<ExitHook> m_at_exit; ///< made with the thread
    pid_t m_process;
};

} // namespace warmgraph::store
