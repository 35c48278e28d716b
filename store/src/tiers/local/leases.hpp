// Which entries living processes use: locks on bytes of one file in the folder, a range of them for each entry. The kernel
// releases them when a process dies.
//
// A user of an entry locks one byte of its range exclusively, which the kernel lets only those do who may write the file.
// Who removes an entry locks its whole range shared. So a process that may only read the file keeps no entry from being
// removed, whatever it locks there.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <random>

#include <sys/types.h>

#include "tiers/local/layout.hpp"
#include "warmgraph/base/file_system.hpp"

namespace warmgraph::store {

/// Thread-safe. Best effort: an entry without its lease may be evicted, which costs a recording.
class Leases {
public:
    /// `may_make`: the file where it is missing. `files` is the opened folder.
    Leases(FileSystem& files, Modes modes, bool may_make) : m_files(files), m_modes(modes), m_may_make(may_make) {}

    /// Held until this is destroyed.
    void take(const EntryKey& key) noexcept;
    /// Runs `work` while nobody can take the lease. False: somebody has it, this process included, and nothing was run.
    bool unless_taken(const EntryKey& key, const std::function<void()>& work);

private:
    /// Null where the file cannot be opened. It is made in a marked folder only. Opened again where it was removed since,
    /// and in a forked child, whose copy would be its parent's: what is taken is taken there, too.
    ByteLocks* locks();
    [[nodiscard]] bool is_current() const;
    /// Takes a byte of those that begin at `first`.
    bool is_taken_by(ByteLocks& locks, std::uint64_t first);

    FileSystem& m_files;
    const Modes m_modes;
    const bool m_may_make;
    std::mutex m_mutex;
    std::unique_ptr<ByteLocks> m_locks; ///< guarded by m_mutex, as what follows
    std::uint64_t m_inode = 0;          ///< of the file that is open
    pid_t m_process = 0;                ///< that opened it
    std::minstd_rand m_random{std::random_device{}()};
    /// By an entry's first byte: is one locked? What this process uses stays from it also where no lock is to be had.
    std::map<std::uint64_t, bool> m_taken;
};

} // namespace warmgraph::store
