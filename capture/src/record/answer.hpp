// The answer: the caller's own run of the function. The recording watches the work that the run enqueues, and copies
// the run's results in the caller's own stream, so that no thread waits.
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

    /// Allocates the copies of all memory that the function may write. Error: out_of_memory.
    [[nodiscard]] Result<void> allocate(const TrialMemory& memory);
    [[nodiscard]] Result<void> begin(const std::shared_ptr<backends::Stream>& stream);
    [[nodiscard]] Result<void> end(const RunContext& context, const TrialMemory& memory);

    [[nodiscard]] bool waits_outside() const noexcept { return m_waits_outside; }
    [[nodiscard]] Result<bool> is_done();
    [[nodiscard]] Result<void> wait();
    /// Call this before destruction. True: the answer's work is done (after at most 1 s) or never began. False: the
    /// answer's memory is leaked, because freeing it would wait for the work, and the work may wait for this thread.
    [[nodiscard]] bool settle() noexcept;
    /// The time from the call until a poll found the work done: an upper limit of the work's time. Call this when the
    /// work is done.
    [[nodiscard]] std::chrono::nanoseconds took_at_most() const noexcept { return m_took; }
    /// Returns the time from the call to its last result, as Event::done_at shows it. If no event shows it, the end is
    /// only known to lie between two polls. Then returns the time until the callable returned plus `work`, the device
    /// time that a trial measured.
    [[nodiscard]] std::chrono::nanoseconds took(std::chrono::nanoseconds work) const noexcept;
    /// The copies, by region; null if a region is only read. Call this after the answer was done.
    [[nodiscard]] const std::vector<MemoryRef>& results() const noexcept { return m_results; }
    [[nodiscard]] bool strayed() const noexcept { return m_stray.has_value(); }
    /// Fails with not_recordable if work was enqueued outside the recorder's stream.
    [[nodiscard]] Result<void> check_enqueued() const;

private:
    void note_done(std::chrono::steady_clock::time_point now) noexcept;

    std::shared_ptr<backends::Device> m_device;
    bool m_waits_outside;
    std::vector<MemoryRef> m_results;
    std::shared_ptr<backends::Stream> m_stream;
    std::unique_ptr<backends::EnqueueWatch> m_watch;
    std::optional<std::string> m_stray;
    bool m_is_abandoned = false;
    std::shared_ptr<backends::Event> m_event;
    std::chrono::steady_clock::time_point m_begun;
    std::chrono::steady_clock::time_point m_returned; ///< when the callable returned
    std::chrono::steady_clock::time_point m_busy;     ///< the last moment at which the work was known not to be done
    std::chrono::nanoseconds m_took{0};               ///< an upper limit of the time that the work took
};

} // namespace warmgraph
