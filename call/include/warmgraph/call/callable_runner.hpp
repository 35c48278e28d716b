// Runs a function's callable: for a call's answer, into a caller's capture, and for recordings.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <vector>

#include "warmgraph/base/phases.hpp"
#include "warmgraph/call/declaration.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/capture/scratch.hpp"
#include "warmgraph/device/recorder.hpp"

namespace warmgraph {

/// The stream of the last launch. Launches that share memory run one after another.
struct LastStream {
    std::shared_ptr<backends::Stream> stream;
};

/// One thread at a time may use an object; any thread may call capture_runs(), retire() and is_retired(). Functions
/// throw the callable's exceptions.
class CallableRunner {
public:
    CallableRunner(std::shared_ptr<const Declaration> declaration, std::shared_ptr<LastStream> last);
    CallableRunner(const CallableRunner&) = delete;
    CallableRunner& operator=(const CallableRunner&) = delete;

    /// Runs the callable for the call's answer.
    RunContext run(const Frame& frame, const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    /// Does the same, and measures the run as the phase "eager run", without the time for compiling programs.
    void run_measured(const Frame& frame, const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    /// Runs the callable while the caller captures the stream: its work becomes part of the caller's graph. Waits for
    /// nothing. The caller's graph can use the scratch of this run as long as this object lives.
    void run_into_capture(const Frame& frame, const std::shared_ptr<backends::Stream>& stream);
    /// Orders a launch in another stream after the last launch, because launches of one function share scratch and
    /// arena.
    void order_after_last(const std::shared_ptr<backends::Stream>& stream);
    /// Checks the callable's tuned configurations, each configuration once per process. Call this outside of captures.
    void validate_tuned() const;

    /// Returns a function that runs the callable for captures, on its own streams, one at a time. The returned function
    /// fails after retire(): the caller may have freed objects that the callable uses. This object must outlive it.
    [[nodiscard]] RunOnce capture_runs();
    void retire() noexcept { m_is_retired = true; }
    [[nodiscard]] bool is_retired() const noexcept { return m_is_retired; }
    /// Returns the error that ends a recording after retire().
    [[nodiscard]] static Error retired();

    /// Returns the scratch of runs for answers.
    [[nodiscard]] std::vector<NamedMemory> scratch_memory() const { return m_scratch.regions(); }

private:
    std::shared_ptr<const Declaration> m_declaration;
    StreamPool m_streams;
    Runnable m_runnable;
    ScratchPool m_scratch;                      ///< scratch of runs for answers
    std::deque<ScratchPool> m_captured_scratch; ///< scratch of runs in callers' captures; their graphs keep using it
    std::mutex m_callable_mutex;                ///< only one run of the callable at a time; this mutex is locked last
    std::atomic<bool> m_is_retired = false;
    std::shared_ptr<LastStream> m_last;
};

} // namespace warmgraph
