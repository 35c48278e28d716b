// The answer: the function as the caller runs it, seen from recording. What it enqueues is watched, and what it leaves
// is copied in the caller's own stream, so that nobody waits.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "verify/trial_memory.hpp"
#include "warmgraph/backends/enqueue_watch.hpp"
#include "warmgraph/capture/run.hpp"

namespace warmgraph {

class Answer {
public:
    Answer(std::shared_ptr<backends::Device> device, const DeclaredHandles& handles);
    Answer(const Answer&) = delete;
    Answer& operator=(const Answer&) = delete;
    ~Answer();

    /// For a copy of what the function may write. out_of_memory.
    [[nodiscard]] Result<void> allocate(const TrialMemory& memory);
    [[nodiscard]] Result<void> begin(const std::shared_ptr<backends::Stream>& stream);
    [[nodiscard]] Result<void> end(const RunContext& context, const TrialMemory& memory);

    [[nodiscard]] bool waits_outside() const noexcept { return m_waits_outside; }
    [[nodiscard]] Result<bool> is_done();
    [[nodiscard]] Result<void> wait();
    /// Before everything goes: whether its work is done, or never began. It is waited for 1 s. Where it is not, freeing
    /// memory would wait for it, and it may wait for this thread: what it uses is leaked then.
    [[nodiscard]] bool settle() noexcept;
    /// From the call to when it was found done: at most so long its work took. After it was done.
    [[nodiscard]] std::chrono::nanoseconds took_at_most() const noexcept { return m_took; }
    /// From the call to its last result, as the driver tells it (Event::done_at). Where it does not, who asks late learns
    /// only between which two moments that came: then it is the time until the callable returned, and what `work` takes
    /// the device, as a trial measured it.
    [[nodiscard]] std::chrono::nanoseconds took(std::chrono::nanoseconds work) const noexcept;
    /// By region: the copies; null where a region is only read. After it was done.
    [[nodiscard]] const std::vector<MemoryRef>& results() const noexcept { return m_results; }
    [[nodiscard]] bool strayed() const noexcept { return m_stray.has_value(); }
    /// not_recordable: work that went past the recorder's stream.
    [[nodiscard]] Result<void> check_enqueued() const;

private:
    void found_done(std::chrono::steady_clock::time_point now) noexcept;

    std::shared_ptr<backends::Device> m_device;
    bool m_waits_outside;
    std::vector<MemoryRef> m_results;
    std::shared_ptr<backends::Stream> m_stream;
    std::unique_ptr<backends::EnqueueWatch> m_watch;
    std::optional<std::string> m_stray;
    bool m_is_abandoned = false;
    std::shared_ptr<backends::Event> m_event;
    std::chrono::steady_clock::time_point m_begun;
    std::chrono::steady_clock::time_point m_returned; ///< the callable
    std::chrono::steady_clock::time_point m_busy;     ///< when it was last known not to be done
    std::chrono::nanoseconds m_took{0};               ///< at most
};

} // namespace warmgraph
