// Does one-time work of a process's first restore ahead, on another thread. The first code that uses the driver's part
// of assert(), as kernels of Triton and PyTorch do, makes the driver link it (1.2 ms on an H200), and the first graph
// with such code prepares it (3 ms). Without such code a first restore costs little more (docs/measurements.md).
// Processes that adopt graphs should not use it: stale words may seem to point to its memory.
#pragma once

#include <functional>
#include <memory>

#include "bulk/launcher.hpp"
#include "device/core.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::backends::cuda {

/// Loads the kernels of `launcher`, instantiates a graph of them that is never launched, and frees it. Ignores
/// failures: the first real use reports them. begin() and wait() are thread-safe.
class WarmUp {
public:
    /// `core` and `launcher` must outlive this object.
    WarmUp(const Core& core, bulk::Launcher& launcher);
    WarmUp(const WarmUp&) = delete;
    WarmUp& operator=(const WarmUp&) = delete;
    ~WarmUp();

    /// Starts the thread. Does nothing if it was called before, or if $WARMGRAPH_WARM_UP is 0. The thread runs `first`
    /// before the other work; objects that `first` uses must outlive this object.
    void begin(std::function<void()> first) noexcept;
    /// Waits for the thread's end if it was started. The driver does one such thing at a time, so working beside the
    /// thread is no faster.
    void wait() noexcept;

private:
    struct State;
    std::shared_ptr<State> m_state; ///< shared with the thread
    const Core& m_core;
    bulk::Launcher& m_launcher;
    ExitHook m_at_exit; ///< waits before the driver is shut down
};

} // namespace warmgraph::backends::cuda
