// The outcomes of a function's calls: the report of the most recent first call, the misses, the counters, and the
// verdicts on calls that run without a graph.
#pragma once

#include <atomic>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "warmgraph/call/counters.hpp"
#include "warmgraph/call/declaration.hpp"
#include "warmgraph/call/plan.hpp"
#include "warmgraph/call/record_job.hpp"
#include "warmgraph/call/recording_pause.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/store/touched_names.hpp"

namespace warmgraph {

enum class Remember : std::uint8_t { no, yes };

/// One thread at a time may use an object. Const functions and is_settled() are thread-safe, except report(), misses()
/// and verdict().
class CallOutcomes {
public:
    struct Sinks {
        std::shared_ptr<store::LocalStore> store; ///< null if caching is off
        std::shared_ptr<Programs> programs;
        // The members below must outlive this object.
        Counters& counters;
        RecordingPause& pause;
        store::TouchedNames& touched;
        std::function<void()> note_replay; ///< called after each replay
        std::size_t most_verdicts = 0;
    };
    CallOutcomes(std::shared_ptr<const Declaration> declaration, Sinks sinks);

    // --- counters

    void count_replay() const { m_sinks.note_replay(); }
    /// Logs and counts a miss, and begins the journey's miss. `name`: the function or pair whose misses are counted;
    /// empty: the miss is not counted.
    void count_miss(const Plan& plan, const std::string& name, FirstCall& first_call) const;
    /// Notes an adoption, which is not a call.
    void note_adoption() const { m_sinks.pause.note_miss(); }
    /// Counts a miss for an entry that verification found wrong.
    void count_wrong_entry(FirstCall& first_call) const;
    /// Counts recordings. `ms`: the time that they took after the call's own result. `recordings`: 0 for a half of a pair
    /// whose other half counts.
    void count_recording(double ms, std::uint64_t recordings = 1) const { m_sinks.counters.recording(ms, recordings); }
    /// Counts a refused recording. `word`: the reason's word in statistics.
    void count_refusal(std::string_view word) const;
    /// Counts a recording that could not be made.
    void count_refusal(const Error& error) const;
    /// Counts the first use of a restored variant. A variant that is verified first counts when it was found right.
    /// `counts`: false if another hit already counts for the variant.
    void count_hit(LoadedVariant& variant, bool counts) const;

    // --- ends of calls

    /// Fills the report, ends the journey's miss, and remembers the verdict if the call runs without a graph.
    Outcome finish(const FirstCall& first_call, Outcome outcome, std::string reason, Remember remember);
    /// Ends the miss of a call that throws.
    void finish_thrown(const FirstCall& first_call);
    /// Adds the first call's times to the report.
    void end_report(const FirstCall& first_call);
    /// Reports a call that ran without a graph and was not a miss. `entry`: the entry that the call did not use; may be
    /// null.
    Outcome report_as_it_is(std::string reason, const Digest* entry);
    /// Returns the remembered outcome for calls with these guards, so that later calls need no look-up.
    [[nodiscard]] std::optional<Outcome> verdict(const Digest& guards_digest);
    void forget_verdicts() noexcept { m_verdicts.clear(); }

    // --- reports

    /// Whether a call was made and its outcome is known.
    [[nodiscard]] bool is_settled() const noexcept { return m_is_settled; }
    [[nodiscard]] const Report& report() const noexcept { return m_report; }
    /// The misses of this process, newest first.
    [[nodiscard]] std::vector<Miss> misses() const;

private:
    struct Verdict {
        Digest guards_digest;
        Outcome outcome = Outcome::eager;
    };
    /// Begins the journey's miss; end_miss() ends it.
    void begin_miss(FirstCall& first_call, std::string reason, const MissAnalysis& analysis) const;
    void end_miss(const FirstCall& first_call, store::MissEnd end);

    std::shared_ptr<const Declaration> m_declaration;
    Sinks m_sinks;
    Report m_report;
    std::vector<store::Miss> m_misses;
    std::list<Verdict> m_verdicts; ///< the most recently used verdict first
    std::atomic<bool> m_is_settled = false;
};

} // namespace warmgraph
