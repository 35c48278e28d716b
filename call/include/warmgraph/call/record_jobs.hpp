// The recordings of one function: begins them at a call's answer, or from a caller's capture; keeps the waiting
// recording; completes recordings without the function's lock.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "warmgraph/adoption.hpp"
#include "warmgraph/call/call_arguments.hpp"
#include "warmgraph/call/call_outcomes.hpp"
#include "warmgraph/call/callable_runner.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/call/publisher.hpp"
#include "warmgraph/call/record_job.hpp"
#include "warmgraph/capture/adoption.hpp"
#include "warmgraph/capture/recording.hpp"

namespace warmgraph {

/// The result of a job, to be handled under the function's lock.
struct CompletedJob {
    Outcome outcome = Outcome::eager;
    std::string reason{};
    Remember remember = Remember::no;
    std::optional<LoadedVariant> variant{}; ///< the variant to keep
};

/// Used under the function's lock, unless a function's comment says otherwise. There is one job at a time.
class RecordJobs {
public:
    struct Settings {
        RecordWhen when{};
        std::chrono::milliseconds probing{};
        /// For adoptions: the longest wait for processes that record the same entry.
        std::chrono::milliseconds wait_for_others{};
    };
    /// `modules` and `counters` must outlive this object.
    RecordJobs(std::shared_ptr<const Declaration> declaration, Publisher publisher, std::shared_ptr<Programs> programs,
               replay::ModuleCache& modules, Counters& counters, Settings settings);

    // --- recordings of calls

    /// Makes the job for a call. `role`: null for a single function.
    [[nodiscard]] std::unique_ptr<RecordJob> new_job(const Frame& frame, const PairRole* role, FirstCall& first_call,
                                                     const std::vector<std::string>& environment,
                                                     CallableRunner& runner) const;
    /// Keeps device code until the job ends. An error refuses the job.
    void hold_code(RecordJob& job) const;
    /// Runs the function for the call's answer and watches its work. If preparing the job fails, refuses the job and
    /// still runs the function. An exception of the callable ends the job.
    void answer(std::unique_ptr<RecordJob>& job, const std::shared_ptr<backends::Stream>& stream,
                CallableRunner& runner) const;
    /// Call this when the answer is given and complete() follows. No other job begins before finish().
    void begin() noexcept { m_is_under_way = true; }
    void finish() noexcept { m_is_under_way = false; }
    /// Keeps the rest of the job for later. Afterwards only take_pending() and take_answered() may use the job.
    void defer(std::unique_ptr<RecordJob>& job);
    /// Whether a job waits or is under way.
    [[nodiscard]] bool has_pending() const noexcept { return m_pending != nullptr || m_is_under_way; }
    [[nodiscard]] bool is_on_demand() const noexcept { return m_settings.when == RecordWhen::on_demand; }
    /// Takes and begins the waiting job if its answer is done, for a call in this stream; waits a moment for the
    /// stream. Returns null if there is no such job.
    [[nodiscard]] std::unique_ptr<RecordJob> take_pending(backends::Stream& stream);
    /// Takes and begins the waiting job if its answer is done, because the caller asks for it.
    [[nodiscard]] std::unique_ptr<RecordJob> take_answered();
    /// Call this without locks, once for each begun job. Throws partly_launched: the caller's memory is damaged.
    [[nodiscard]] CompletedJob complete(RecordJob& job, const PairRole* role, const Lookup& lookup,
                                        const CallOutcomes& outcomes);
    /// Gives up the recording; the caller already has the function's own result.
    [[nodiscard]] CompletedJob refuse(const RecordJob& job, const Error& error, const CallOutcomes& outcomes);

    // --- recordings of captures

    /// Throws if an adoption is impossible. Call this before the capture is read.
    void require_adoptable(const FirstCall& first_call) const;
    [[nodiscard]] AdoptedCapture adopted_capture(const NativeCapture& capture, const Frame& frame) const;
    /// Records a caller's capture. `second`: the second capture; null if there is none. Sets `beside` to the relation
    /// of the entry on disk to the recording.
    [[nodiscard]] Result<Recording> adopt(const Adoption& adoption, const Frame& frame, const AdoptedCapture& first,
                                          const AdoptedCapture* second, FirstCall& first_call, const Lookup& lookup,
                                          EntryComparison& beside) const;
    /// Publishes an adopted recording. Returns why the recording stays in this process only, or an empty text. Throws
    /// if the stored entry is a recompile.
    [[nodiscard]] std::string keep_adopted(FirstCall& first_call, Recording& recording, const EntryComparison& beside,
                                           const CallOutcomes& outcomes) const;
    /// Writes the capture for other processes' adoptions and returns the file's name. Throws if the capture is refused.
    [[nodiscard]] std::string write_capture(const Adoption& adoption, const Frame& frame, const Digest& digest) const;

    [[nodiscard]] const Publisher& publisher() const noexcept { return m_publisher; }
    /// Waits for the entry's lock, for an adoption. Returns null if recordings are not published, or if the time limit
    /// is reached.
    [[nodiscard]] std::unique_ptr<FileLock> wait_for_lock(const Digest& digest) const;

private:
    [[nodiscard]] CaptureTarget target() const;
    [[nodiscard]] Result<void> check_programs(const RunContext& context) const;
    [[nodiscard]] CompletedJob complete_verification(RecordJob& job, const PairRole* role, const Lookup& lookup,
                                                     const CallOutcomes& outcomes);
    [[nodiscard]] CompletedJob complete_recording(RecordJob& job, const PairRole* role, const Lookup& lookup,
                                                  const CallOutcomes& outcomes);
    [[nodiscard]] Result<Recording> record(RecordJob& job) const;
    [[nodiscard]] EntryComparison compare_with_stored(const Recording& recording, RecordJob& job,
                                                      const Lookup& lookup) const;
    [[nodiscard]] Result<Recording> adopt_with_others(const AdoptedCapture& first, AdoptOptions options,
                                                      const Frame& frame, const std::string& folder,
                                                      FirstCall& first_call) const;

    std::shared_ptr<const Declaration> m_declaration;
    Publisher m_publisher;
    std::shared_ptr<Programs> m_programs;
    replay::ModuleCache& m_modules;
    Counters& m_counters;
    Settings m_settings;
    Faults m_faults;
    std::unique_ptr<RecordJob> m_pending; ///< the waiting job
    bool m_is_under_way = false;
    std::set<Digest> m_strayed; ///< guards digests of calls that were refused for work outside the recorder's stream
};

} // namespace warmgraph
