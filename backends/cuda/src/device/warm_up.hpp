// What the first restore of a process would wait for, done ahead on another thread. The first code that calls the driver's part of
// assert() makes the driver link it (1.2 ms on an H200), and the first graph with such code makes it ready (3 ms); kernels of Triton and
// PyTorch are such code. Without it neither a first module nor a first graph costs anything to speak of. Measured: docs/measurements.md.
// The driver keeps memory for it, which a stale word in a parameter may seem to point to: a process that adopts does better without.
#pragma once

#include <functional>
#include <memory>

#include "bulk/launcher.hpp"
#include "device/core.hpp"
#include "warmgraph/base/exit_hook.hpp"

namespace warmgraph::backends::cuda {

/// Loads the kernels of `launcher`, instantiates a graph of them, which is never launched, and frees it. Any failure is left to whoever
/// needs the same thing. begin() and wait() from any thread.
class WarmUp {
public:
    /// Both outlive it.
    WarmUp(const Core& core, bulk::Launcher& launcher);
    WarmUp(const WarmUp&) = delete;
    WarmUp& operator=(const WarmUp&) = delete;
    ~WarmUp();

    /// Once; later calls do nothing. Nor does it do anything where $WARMGRAPH_WARM_UP is 0. `first`: what the thread does
    /// before that; what it needs outlives this object.
    void begin(std::function<void()> first) noexcept;
    /// Until it is done, where it was begun. The driver does one such thing at a time: who goes on beside it is no faster.
    void wait() noexcept;

private:
    struct State;
    std::shared_ptr<State> m_state; ///< the thread's too
    const Core& m_core;
    bulk::Launcher& m_launcher;
    ExitHook m_at_exit; ///< the driver is taken down after it
};

} // namespace warmgraph::backends::cuda
