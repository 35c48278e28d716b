// The queues of all streams of this process, for what must come after everything that is under way.
//
// PoCL compiles a kernel in a worker thread at its first launch. A program's image lacks what is still being compiled, and
// a process that exits meanwhile runs LLVM's static destructors under that worker and crashes (NOTES.md).
#pragma once

#include <mutex>
#include <set>

#include <sys/types.h>
#include <unistd.h>

#include "driver.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::backends::opencl {

/// Thread-safe. When the process exits, its work is waited for.
class LiveQueues {
public:
    [[nodiscard]] static LiveQueues& instance();
    void add(cl_command_queue queue);
    /// Waits for its work first.
    void remove(cl_command_queue queue) noexcept;
    void finish_all() noexcept;

private:
    LiveQueues() = default;

    const pid_t m_process = ::getpid(); ///< a forked child has none of the driver's threads, and would wait for ever
    std::mutex m_mutex;
    std::set<cl_command_queue> m_queues;
    ExitHook m_at_exit{[this] { finish_all(); }}; ///< made with the first stream: the driver is loaded, and outlives it
};

} // namespace warmgraph::backends::opencl
