// The queues of all streams of this process, to wait for all running work.
//
// PoCL compiles a kernel in a worker thread at its first launch. Until then a program's image lacks that code, and a
// process that exits would destroy LLVM's static objects while the worker uses them, and crash (NOTES.md).
#pragma once

#include <mutex>
#include <set>

#include <sys/types.h>
#include <unistd.h>

#include "driver.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::backends::opencl {

/// Thread-safe. At the process's exit it waits for the work of all queues.
class LiveQueues {
public:
    [[nodiscard]] static LiveQueues& instance();
    void add(cl_command_queue queue);
    /// Waits for the queue's work first.
    void remove(cl_command_queue queue) noexcept;
    void finish_all() noexcept;

private:
    LiveQueues() = default;

    const pid_t m_process = ::getpid(); ///< a forked child lacks the driver's threads and would wait for ever
    std::mutex m_mutex;
    std::set<cl_command_queue> m_queues;
    ExitHook m_at_exit{[this] { finish_all(); }}; ///< made with the first stream, after the driver was loaded
};

} // namespace warmgraph::backends::opencl
