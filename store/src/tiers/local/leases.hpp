// Records which entries living processes use, as locks on bytes of one file in the folder: a range of bytes for each
// entry. The kernel releases the locks when a process dies.
//
// A process that uses an entry locks one byte of its range exclusively; the kernel permits this only with the right to
// write the file. A process that removes an entry locks its whole range shared. So a process that can only read the
// file cannot keep an entry from being removed.
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
    /// `may_make`: make the file when it is missing. `files` is the opened folder.
    Leases(FileSystem& files, Modes modes, bool may_make) : m_files(files), m_modes(modes), m_may_make(may_make) {}

    /// The lease lasts until this object is destroyed.
    void take(const EntryKey& key) noexcept;
    /// Runs `work` while no process can take the lease. False: a process (maybe this one) has the lease, and `work` was
    /// not run.
    bool unless_taken(const EntryKey& key, const std::function<void()>& work);

private:
    /// Returns null when the file cannot be opened. The file is made in a marked folder only. It is opened again when
    /// it was removed, and in a forked child, where the open file belongs to the parent; then the leases are taken
    /// again.
    ByteLocks* locks();
    [[nodiscard]] bool is_current() const;
    /// Takes one byte of the range that begins at `first`.
    bool is_taken_by(ByteLocks& locks, std::uint64_t first);

    FileSystem& m_files;
    const Modes m_modes;
    const bool m_may_make;
    std::mutex m_mutex;
    std::unique_ptr<ByteLocks> m_locks; ///< guarded by m_mutex, as the members below
    std::uint64_t m_inode = 0;          ///< inode of the open file
    pid_t m_process = 0;                ///< the process that opened it
    std::minstd_rand m_random{std::random_device{}()};
    /// For each entry's first byte: whether a byte is locked. This process removes no entry in this map, locked or not.
    std::map<std::uint64_t, bool> m_taken;
};

} // namespace warmgraph::store
