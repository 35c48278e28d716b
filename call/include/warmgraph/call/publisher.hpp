// What was recorded goes into the folder, unless a second recording under the same guards differs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "warmgraph/call/faults.hpp"
#include "warmgraph/call/job.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/store/touched.hpp"

namespace warmgraph {

/// The relation of the entry on disk to a new recording under the same guards.
struct EntryBeside {
    enum class Is : std::uint8_t {
        nothing,    ///< not there, the same graph, or nothing that can be restored or run: it is replaced
        as_good,    ///< it differs in what does not count, and does the same: it stands
        recompiled, ///< another one: both are refused
    };
    Is is = Is::nothing;
    std::vector<std::string> difference{};              ///< of what is recompiled
    std::optional<cachefmt::RecordingPart> recording{}; ///< its own, where it is the same work
};

/// Without state of its own: thread-safe.
class Publisher {
public:
    struct Sinks {
        std::shared_ptr<store::LocalStore> store; ///< null where caching is off: then nothing else is asked of it
        std::shared_ptr<PairEntries> pair;        ///< null for a function by itself
        std::optional<cachefmt::Part> part;       ///< of the pair
        std::string why_off;
        std::shared_ptr<Programs> programs;
        // They outlive this.
        store::Touched& touched;
        Counters& counters;
    };
    Publisher(std::shared_ptr<const Declaration> declaration, Sinks sinks);

    /// Empty where what is recorded goes into the folder.
    [[nodiscard]] std::string why_not() const;
    /// Of the entry: whoever holds it records it. Null: another process has it. Nothing is waited for. REQUIRES: a store.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_lock(const Digest& digest) const;
    /// Waits so long, and goes without the lock where its holder outlives that, or the folder fails.
    [[nodiscard]] std::unique_ptr<FileLock> lock(const Digest& digest, std::chrono::milliseconds limit) const;
    /// Of a new entry for these guards.
    [[nodiscard]] cachefmt::EntryHeader new_header(const Journey& journey) const;
    /// Whether an entry says that the function was recorded with different graphs under these guards; if so, which.
    [[nodiscard]] std::optional<std::string> recompiled(const Digest& digest) const;
    /// What cannot be restored or run here proves nothing, whatever the cause: what was recorded takes its place. What
    /// can is a recompile where it does something else, or does it in another way. partly_launched: memory of the
    /// caller's that was used in place is damaged.
    [[nodiscard]] Result<EntryBeside> judge(const cachefmt::Entry& recorded, const Lookup& lookup, const Frame& frame,
                                            const HoldToAnswer& hold) const;
    /// The function is not a function of its guards: nothing is replayed for these. Returns what differs.
    [[nodiscard]] std::string publish_tombstone(const cachefmt::Entry& recorded, const EntryBeside& beside) const;
    /// Empty, or why nothing was published (the recording itself stays usable in this process).
    [[nodiscard]] std::string publish(Phases& phases, Recording& recording, const EntryBeside& beside) const;

private:
    std::shared_ptr<const Declaration> m_declaration;
    Sinks m_sinks;
    Faults m_faults;
};

} // namespace warmgraph
