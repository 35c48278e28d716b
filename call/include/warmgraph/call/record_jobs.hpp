// The recordings of one function: begun around a call's answer, or of a capture that the caller made; kept where they wait
// for their moment, completed without the function's lock.
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
#include "warmgraph/call/job.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/call/publisher.hpp"
#include "warmgraph/capture/adoption.hpp"
#include "warmgraph/capture/recording.hpp"

namespace warmgraph {

/// What became of a job: what is left to do under the function's lock.
struct CompletedJob {
    Outcome outcome = Outcome::eager;
    std::string reason{};
    Remember remember = Remember::no;
    std::optional<LoadedVariant> variant{}; ///< to be kept
};

/// Under the function's lock, but for what says otherwise. One job at a time.
class RecordJobs {
public:
    struct Settings {
        RecordWhen when{};
        std::chrono::milliseconds probing{};
        std::chrono::milliseconds wait_for_others{}; ///< who record the same entry; of adoptions
    };
    /// `modules` and `counters` outlive it.
    RecordJobs(std::shared_ptr<const Declaration> declaration, Publisher publisher, std::shared_ptr<Programs> programs,
               replay::ModuleCache& modules, Counters& counters, Settings settings);

    // --- a call's

    /// `role`: null for a function by itself.
    [[nodiscard]] std::unique_ptr<Job> new_job(const Frame& frame, const PairRole* role, Journey& journey,
                                               const std::vector<std::string>& environment,
                                               CallableRunner& runner) const;
    /// Keeps device code until the job ends. An error refuses it.
    void hold_code(Job& job) const;
    /// Gives the call its answer, watched. What cannot be prepared is refused, and answered all the same. What the
    /// callable throws ends the job.
    void answer(std::unique_ptr<Job>& job, const std::shared_ptr<backends::Stream>& stream,
                CallableRunner& runner) const;
    /// The answer is given, and complete() comes next. Until finish(), no other job begins.
    void begin() noexcept { m_is_under_way = true; }
    void finish() noexcept { m_is_under_way = false; }
    /// The rest waits for its moment. Nothing of the job may be used afterwards but by take_*().
    void defer(std::unique_ptr<Job>& job);
    /// One waits for its moment, or is under way.
    [[nodiscard]] bool has_pending() const noexcept { return m_pending != nullptr || m_is_under_way; }
    [[nodiscard]] bool is_on_demand() const noexcept { return m_settings.when == RecordWhen::on_demand; }
    /// What waits and is done, begun; for a call in this stream, whose own work is waited for a moment. Null: nothing.
    [[nodiscard]] std::unique_ptr<Job> take_pending(backends::Stream& stream);
    /// The same where it was asked for.
    [[nodiscard]] std::unique_ptr<Job> take_answered();
    /// Called without locks, once for each job that was begun. Throws partly_launched: memory of the caller's is damaged.
    [[nodiscard]] CompletedJob complete(Job& job, const PairRole* role, const Lookup& lookup,
                                        const CallOutcomes& outcomes);
    /// The caller has the function's own result; only the recording is given up.
    [[nodiscard]] CompletedJob refuse(const Job& job, const Error& error, const CallOutcomes& outcomes);

    // --- of captures

    /// Throws what stands in the way before anything is looked at.
    void require_adoptable(const Journey& journey) const;
    [[nodiscard]] AdoptedCapture adopted_capture(const NativeCapture& capture, const Frame& frame) const;
    /// `second`: null where there is none. Fills in what lies beside it on disk.
    [[nodiscard]] Result<Recording> adopt(const Adoption& adoption, const Frame& frame, const AdoptedCapture& first,
                                          const AdoptedCapture* second, Journey& journey, const Lookup& lookup,
                                          EntryBeside& beside) const;
    /// Empty, or why the recording stays in this process only. Throws for a recompile.
    [[nodiscard]] std::string keep_adopted(Journey& journey, Recording& recording, const EntryBeside& beside,
                                           const CallOutcomes& outcomes) const;
    /// Writes it for other processes' adoptions; the name of the file. Throws what it refuses.
    [[nodiscard]] std::string write_capture(const Adoption& adoption, const Frame& frame, const Digest& digest) const;

    [[nodiscard]] const Publisher& publisher() const noexcept { return m_publisher; }
    /// Of an adoption, which has nothing else to do meanwhile. Null where nothing is published, or after a while.
    [[nodiscard]] std::unique_ptr<FileLock> wait_for_lock(const Digest& digest) const;

private:
    [[nodiscard]] Subject subject() const;
    [[nodiscard]] Result<void> check_programs(const RunContext& context) const;
    [[nodiscard]] CompletedJob complete_verification(Job& job, const PairRole* role, const Lookup& lookup,
                                                     const CallOutcomes& outcomes);
    [[nodiscard]] CompletedJob complete_recording(Job& job, const PairRole* role, const Lookup& lookup,
                                                  const CallOutcomes& outcomes);
    [[nodiscard]] Result<Recording> record(Job& job) const;
    [[nodiscard]] EntryBeside beside(const Recording& recording, Job& job, const Lookup& lookup) const;
    [[nodiscard]] Result<Recording> adopt_with_others(const AdoptedCapture& first, AdoptOptions options,
                                                      const Frame& frame, const std::string& folder,
                                                      Journey& journey) const;

    std::shared_ptr<const Declaration> m_declaration;
    Publisher m_publisher;
    std::shared_ptr<Programs> m_programs;
    replay::ModuleCache& m_modules;
    Counters& m_counters;
    Settings m_settings;
    Faults m_faults;
    std::unique_ptr<Job> m_pending; ///< waits for its moment
    bool m_is_under_way = false;
    std::set<Digest> m_strayed; ///< guards digests of calls that were refused for work past the recorder's stream
};

} // namespace warmgraph
