// What a first launch did not wait for, done behind it: its graph's instantiation (replay::Instantiation::later).
#pragma once

#include <atomic>
#include <functional>
#include <optional>
#include <stop_token>
#include <thread>

#include <sys/types.h>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// Smaller graphs take no longer to instantiate than a thread takes to start.
inline constexpr std::size_t k_least_nodes_for_later = 64;

/// When a graph of a first call is instantiated.
[[nodiscard]] inline replay::Instantiation instantiation_of(const cachefmt::Graph& graph,
                                                            const backends::Device& device) noexcept
{
    return device.limits().instantiates_slowly && graph.nodes.size() >= k_least_nodes_for_later
               ? replay::Instantiation::later
               : replay::Instantiation::at_restore;
}

/// One thread at most, which ends before this does and before the process exits. Used under its function's lock.
class Completion {
public:
    Completion() = default;
    Completion(const Completion&) = delete;
    Completion& operator=(const Completion&) = delete;
    ~Completion() { end(); }

    /// Nothing where the thread is still busy, or cannot be started: the second launch does it then. `work` must not throw,
    /// and ends soon after a stop.
    void begin(std::function<void(const std::stop_token&)> work) noexcept;

private:
    void end() noexcept;

    std::jthread m_thread;
    std::atomic<bool> m_is_working = false;
    pid_t m_process = 0; ///< that began it: a forked child has no such thread
    std::optional<ExitHook> m_at_exit;
};

} // namespace warmgraph
