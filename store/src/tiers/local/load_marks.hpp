// Marks of loads: while a driver loads an entry's code, a file beside the entry says so in its name. The file of a dead
// process counts as a death. load_marks.md has the argument.
#pragma once

#include <atomic>
#include <chrono>
#include <list>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include <sys/types.h>
#include <unistd.h>

#include "tiers/local/disk.hpp"
#include "warmgraph/base/exit_hook.hpp"
#include "warmgraph/store/load_mark.hpp"

namespace warmgraph::store {

inline constexpr std::string_view k_load_mark_prefix = ".loading-";
/// An entry is not loaded after this many deaths in a row. A single death may be a kill at the wrong moment.
inline constexpr unsigned k_deaths_that_condemn = 2;
/// A mark whose writer cannot be checked (another machine, another container) counts as a death from this age on.
inline constexpr std::chrono::minutes k_load_takes_at_most{10};
/// After this time, the work of a first launch (e.g. a kernel that runs as long as the service) no longer counts:
/// ending the process is then not a death. This time is shorter than the time above.
inline constexpr std::chrono::minutes k_first_launch_counts_for{5};
inline constexpr std::chrono::hours k_deaths_count_for{30 * 24};

/// Whether the name has exactly the form of a mark.
[[nodiscard]] bool is_load_mark(std::string_view name) noexcept;

/// Returns marks of dead writers among `items` (in `folder`) whose entry is gone, or that are older than
/// k_deaths_count_for.
[[nodiscard]] std::vector<std::string> spent_load_marks(const Disk& disk, const Path& folder,
                                                        const std::vector<DirectoryItem>& items);
/// Removes dead writers' marks, of one entry or of all in the folder. Returns the number removed. Best effort.
std::uint64_t remove_dead_load_marks(const Disk& disk, const Path& folder, const std::optional<Digest>& entry = {});

/// The marks of this process. Thread-safe.
class LoadMarks {
public:
    /// `disk` must outlive this object, and this object must outlive its marks.
    explicit LoadMarks(const Disk& disk) : m_disk(disk) {}
    LoadMarks(const LoadMarks&) = delete;
    LoadMarks& operator=(const LoadMarks&) = delete;
    /// Asks the waiting loads once more, and ends them.
    ~LoadMarks();

    /// Call this right before the driver loads the code. driver_failed: the last two loads in a row died; the message
    /// has the cure. Null: no mark was made, because the folder is not written or the write failed.
    [[nodiscard]] Result<std::unique_ptr<LoadMark>> begin(const EntryKey& key, const LoadTarget& target) noexcept;
    /// Keeps the mark until `is_done` says that the load is over; settle() calls `is_done`.
    void end_behind(std::unique_ptr<LoadMark> mark, IsDone is_done) noexcept;
    /// Ends the loads that are done. Returns false when no load waits any more. Does nothing in a forked child.
    bool settle() noexcept;
    /// Call this when the entry was replaced or removed: deaths while loading it no longer count. Best effort.
    void forget(const EntryKey& key) noexcept;

private:
    class MarkFile;
    struct PendingMark {
        std::unique_ptr<LoadMark> mark;
        IsDone is_done;
        std::chrono::steady_clock::time_point since;
    };
    /// Asks whether the load goes on; if not, reports its result to the mark.
    [[nodiscard]] bool goes_on(const PendingMark& one) const;
    [[nodiscard]] Result<std::unique_ptr<LoadMark>> make(const EntryKey& key, const LoadTarget& target, unsigned row);
    /// Called when the process exits: ends the marks of other threads' loads and of waiting loads. An exit inside a
    /// load is a death.
    void end_at_exit() noexcept;

    const Disk& m_disk;
    std::mutex m_mutex;
    std::set<const MarkFile*> m_marks; ///< guarded by m_mutex
    bool m_is_exiting = false;         ///< guarded by m_mutex
    std::optional<ExitHook> m_at_exit;
    const pid_t m_process = ::getpid();
    std::atomic<std::size_t> m_waiting_count = 0; ///< includes the loads that are being asked
    std::list<PendingMark> m_waiting;             ///< guarded by m_mutex
};

} // namespace warmgraph::store
