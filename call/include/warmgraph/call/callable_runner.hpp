// Runs a function's callable as it is: for a call's answer, into a capture of the caller's, and for recordings.
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

/// The stream of the last launch. Launches that share memory come one after the other.
struct LastStream {
    std::shared_ptr<backends::Stream> stream;
};

/// One thread at a time, but for capture_runs(), retire() and is_retired(), which any thread may use. Throws what the
/// callable throws.
class CallableRunner {
public:
    CallableRunner(std::shared_ptr<const Declaration> declaration, std::shared_ptr<LastStream> last);
    CallableRunner(const CallableRunner&) = delete;
    CallableRunner& operator=(const CallableRunner&) = delete;

    /// For the call's answer.
    RunContext run(const Frame& frame, const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    /// The same, as the phase "eager run": without what of it compiled programs.
    void run_measured(const Frame& frame, const std::shared_ptr<backends::Stream>& stream, Phases& phases);
    /// The caller captures the stream: the callable's work becomes part of his graph. Nothing is waited for, and the
    /// scratch stays his graph's for as long as this lives.
    void run_into_capture(const Frame& frame, const std::shared_ptr<backends::Stream>& stream);
    /// Launches of one function share its scratch and arena, so a launch in another stream comes after the last one.
    void order_after_last(const std::shared_ptr<backends::Stream>& stream);
    /// Checks the tuned configurations that it runs with, each once in a process. Outside of any capture.
    void validate_tuned() const;

    /// Runs it for captures, on streams of its own, one at a time. Fails once retire() was called: the caller may have
    /// freed what the callable uses. This outlives the result.
    [[nodiscard]] RunOnce capture_runs();
    void retire() noexcept { m_is_retired = true; }
    [[nodiscard]] bool is_retired() const noexcept { return m_is_retired; }
    /// Why a recording ends then.
    [[nodiscard]] static Error retired();

    /// Of runs for answers.
    [[nodiscard]] std::vector<NamedMemory> scratch_memory() const { return m_scratch.regions(); }

private:
    std::shared_ptr<const Declaration> m_declaration;
    StreamPool m_streams;
    Runnable m_runnable;
    ScratchPool m_scratch;                      ///< of runs for answers
    std::deque<ScratchPool> m_captured_scratch; ///< of runs in the caller's own captures: his graphs keep using it
    std::mutex m_callable_mutex;                ///< one run of the callable at a time; taken last
    std::atomic<bool> m_is_retired = false;
    std::shared_ptr<LastStream> m_last;
};

} // namespace warmgraph
