// Publishes recordings in the folder. If a second recording under the same guards differs, publishes a tombstone
// instead.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "warmgraph/call/faults.hpp"
#include "warmgraph/call/lookup.hpp"
#include "warmgraph/call/record_job.hpp"
#include "warmgraph/capture/recording.hpp"
#include "warmgraph/device/programs.hpp"
#include "warmgraph/store/touched_names.hpp"

namespace warmgraph {

/// The relation of the entry on disk to a new recording under the same guards.
struct EntryComparison {
    enum class Relation : std::uint8_t {
        nothing,    ///< the entry is missing, has the same graph, or cannot be restored or run: it is replaced
        as_good,    ///< the entry differs only in scratch or padding: it stays
        recompiled, ///< the entry has a different graph: both are refused
    };
    Relation relation = Relation::nothing;
    std::vector<std::string> difference{};              ///< for `recompiled`: the differences
    std::optional<cachefmt::RecordingPart> recording{}; ///< the stored entry's part, if that entry does the same work
};

/// Stateless and thread-safe.
class Publisher {
public:
    struct Sinks {
        std::shared_ptr<store::LocalStore> store; ///< null if caching is off; then only why_not() is used
        std::shared_ptr<PairEntries> pair;        ///< null for a single function
        std::optional<cachefmt::Part> part;       ///< which half of the pair the function is
        std::string why_off;
        std::shared_ptr<Programs> programs;
        // The members below must outlive this object.
        store::TouchedNames& touched;
        Counters& counters;
    };
    Publisher(std::shared_ptr<const Declaration> declaration, Sinks sinks);

    /// Returns why recordings are not published; empty if they are published.
    [[nodiscard]] std::string why_not() const;
    /// Takes the lock for recording the entry; does not wait. Null: another process holds it. REQUIRES: there is a
    /// store.
    [[nodiscard]] Result<std::unique_ptr<FileLock>> try_lock(const Digest& digest) const;
    /// Waits for the lock up to the limit. Returns null if another process still holds the lock then, or if the folder
    /// fails.
    [[nodiscard]] std::unique_ptr<FileLock> lock(const Digest& digest, std::chrono::milliseconds limit) const;
    /// Makes the header of a new entry for these guards.
    [[nodiscard]] cachefmt::EntryHeader new_header(const FirstCall& first_call) const;
    /// Returns how two recordings under these guards differed, if a stored entry says so.
    [[nodiscard]] std::optional<std::string> recompiled(const Digest& digest) const;
    /// Compares a new recording with the stored entry. An entry that cannot be restored or run here is replaced,
    /// whatever the cause. Any other entry counts as a recompile if it does other work than the recording, or the same
    /// work in another way. partly_launched: memory of the caller that was used in place is damaged.
    [[nodiscard]] Result<EntryComparison> judge(const cachefmt::Entry& recorded, const Lookup& lookup,
                                                const Frame& frame, const HoldToAnswer& hold) const;
    /// Publishes a tombstone: these guards do not determine the work, so nothing is replayed for them. Returns the
    /// differences.
    [[nodiscard]] std::string publish_tombstone(const cachefmt::Entry& recorded, const EntryComparison& beside) const;
    /// Returns why nothing was published (this process can still use the recording), or an empty text.
    [[nodiscard]] std::string publish(Phases& phases, Recording& recording, const EntryComparison& beside) const;

private:
    std::shared_ptr<const Declaration> m_declaration;
    Sinks m_sinks;
    Faults m_faults;
};

} // namespace warmgraph
