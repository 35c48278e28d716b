// What became of a function's calls: the report of the last first call, the misses, what is counted, and the verdicts on
// calls that run as they are.
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
#include "warmgraph/call/job.hpp"
#include "warmgraph/call/plan.hpp"
#include "warmgraph/call/recording_pause.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/store/touched.hpp"

namespace warmgraph {

enum class Remember : std::uint8_t { no, yes };

/// One thread at a time; const functions and is_settled() are thread-safe, but for report(), misses() and verdict().
class CallOutcomes {
public:
    struct Sinks {
        std::shared_ptr<store::LocalStore> store; ///< null where caching is off
        std::shared_ptr<Programs> programs;
        // They outlive this.
        Counters& counters;
        RecordingPause& pause;
        store::Touched& touched;
        std::function<void()> note_replay; ///< called after each
        std::size_t most_verdicts = 0;
    };
    CallOutcomes(std::shared_ptr<const Declaration> declaration, Sinks sinks);

    // --- counted

    void count_replay() const { m_sinks.note_replay(); }
    /// A miss: in the log and the counters, and as the journey's. `name`: whose miss it is; empty: nobody's.
    void count_miss(const Plan& plan, const std::string& name, Journey& journey) const;
    /// A recording of somebody else's, which is no call.
    void note_adoption() const { m_sinks.pause.note_miss(); }
    /// A miss, for an entry that was found wrong.
    void count_wrong_entry(Journey& journey) const;
    /// `ms`: that recording took, after the call's own result. `recordings`: 0 for a half of a pair whose other half
    /// counts.
    void count_recording(double ms, std::uint64_t recordings = 1) const { m_sinks.counters.recording(ms, recordings); }
    /// `word`: the reason for statistics.
    void count_refusal(std::string_view word) const;
    /// The same of a recording that could not be made.
    void count_refusal(const Error& error) const;
    /// At the first use: what is held to the function and found wrong was no hit. `counts`: false where another
    /// hit stands for it, too.
    void count_hit(LoadedVariant& variant, bool counts) const;

    // --- ended

    /// Fills the report, ends the journey's miss, and remembers the verdict on a call that runs as it is.
    Outcome finish(const Journey& journey, Outcome outcome, std::string reason, Remember remember);
    /// Of a call that throws.
    void finish_thrown(const Journey& journey);
    /// Fills in how long it took.
    void end_report(const Journey& journey);
    /// A call ran as it is without being a miss. `entry`: the one that it did not use; may be null.
    Outcome report_as_it_is(std::string reason, const Digest* entry);
    /// What calls of these guards are answered with: asked once, so that later calls cost no look-up.
    [[nodiscard]] std::optional<Outcome> verdict(const Digest& guards_digest);
    void forget_verdicts() noexcept { m_verdicts.clear(); }

    // --- told

    /// A call was made, and what became of it is known.
    [[nodiscard]] bool is_settled() const noexcept { return m_is_settled; }
    [[nodiscard]] const Report& report() const noexcept { return m_report; }
    /// Of this process, the newest first.
    [[nodiscard]] std::vector<Miss> misses() const;

private:
    struct Verdict {
        Digest guards_digest;
        Outcome outcome = Outcome::eager;
    };
    /// The journey's miss, without an end yet.
    void begin_miss(Journey& journey, std::string reason, const Judgement& judgement) const;
    void end_miss(const Journey& journey, store::MissEnd end);

    std::shared_ptr<const Declaration> m_declaration;
    Sinks m_sinks;
    Report m_report;
    std::vector<store::Miss> m_misses;
    std::list<Verdict> m_verdicts; ///< the most recently used first
    std::atomic<bool> m_is_settled = false;
};

} // namespace warmgraph
