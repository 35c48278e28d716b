// Which entries' code is being given to a driver, and which loads somebody died in: a file beside the entry for each load,
// whose name says all. load_marks.md has the argument.
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
/// An entry is not loaded after so many deaths in a row. One may be a kill at the wrong moment.
inline constexpr unsigned k_deaths_that_condemn = 2;
/// Of a writer that cannot be asked for (another machine, another container), a mark counts as a death from this age on.
inline constexpr std::chrono::minutes k_load_takes_at_most{10};
/// Work of a first launch that takes longer (a kernel that runs as long as the service, one that waits for the outside) says
/// nothing any more: whoever ends it then does not die over it. Less than the time above.
inline constexpr std::chrono::minutes k_first_launch_counts_for{5};
inline constexpr std::chrono::hours k_deaths_count_for{30 * 24};

/// Exactly such a name.
[[nodiscard]] bool is_load_mark(std::string_view name) noexcept;

/// The names among `items`, which lie in `folder`, of dead writers' marks that say nothing any more: their entry is gone, or
/// they are older than k_deaths_count_for.
[[nodiscard]] std::vector<std::string> spent_load_marks(const Disk& disk, const Path& folder,
                                                        const std::vector<DirectoryItem>& items);
/// Removes the marks of dead writers, of one entry or of all in the folder. Returns how many went. Best effort.
std::uint64_t remove_dead_load_marks(const Disk& disk, const Path& folder, const std::optional<Digest>& entry = {});

/// The marks of this process. Thread-safe.
class LoadMarks {
public:
    /// `disk` must outlive it, and it its marks.
    explicit LoadMarks(const Disk& disk) : m_disk(disk) {}
    LoadMarks(const LoadMarks&) = delete;
    LoadMarks& operator=(const LoadMarks&) = delete;
    /// What still waits is asked once more, and ends.
    ~LoadMarks();

    /// Right before the driver is given the code. driver_failed: the last two in a row that did so died over it; the message
    /// says what to do. Null where nothing is noted: the folder is not written, or that failed.
    [[nodiscard]] Result<std::unique_ptr<LoadMark>> begin(const EntryKey& key, const LoadTarget& target) noexcept;
    /// The mark ends when `is_done` says so, which settle() asks.
    void end_behind(std::unique_ptr<LoadMark> mark, IsDone is_done) noexcept;
    /// False: none waits any more. In a forked child, whose driver is its parent's, nothing is asked.
    bool settle() noexcept;
    /// Another entry has taken this one's place, or none: its deaths count no more. Best effort.
    void forget(const EntryKey& key) noexcept;

private:
    class Mark;
    struct Waiting {
        std::unique_ptr<LoadMark> mark;
        IsDone is_done;
        std::chrono::steady_clock::time_point since;
    };
    /// Asks, and says to the mark what came of it.
    [[nodiscard]] bool goes_on(const Waiting& one) const;
    [[nodiscard]] Result<std::unique_ptr<LoadMark>> make(const EntryKey& key, const LoadTarget& target, unsigned row);
    /// The process exits while other threads load, or behind a launch: that is no death. What exits inside of a load is one.
    void end_at_exit() noexcept;

    const Disk& m_disk;
    std::mutex m_mutex;
    std::set<const Mark*> m_marks; ///< guarded by m_mutex
    bool m_is_exiting = false;     ///< guarded by m_mutex
    std::optional<ExitHook> m_at_exit;
    const pid_t m_process = ::getpid();
    std::atomic<std::size_t> m_waiting_count = 0; ///< those that are being asked, too
    std::list<Waiting> m_waiting;                 ///< guarded by m_mutex
};

} // namespace warmgraph::store
