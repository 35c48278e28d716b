// The seam for files: every access to the cache folder goes through a FileSystem, so that tests can make the Nth
// operation fail, cut the power, fill the disk, or present a folder of another user.
//
// Thread-safe. Failures carry errno's text and map to io_failed, no_space, permission_denied or not_found.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

enum class FileType : std::uint8_t { regular, directory, other };

struct FileInfo {
    FileType type = FileType::other;
    std::uint64_t size = 0;
    std::uint32_t mode = 0;  ///< permission bits
    std::uint32_t owner = 0; ///< user id
    std::uint32_t group = 0; ///< group id
    std::uint64_t inode = 0; ///< differs for two files that exist at the same time
    /// The time of the last change. It is the epoch if the stored time is more than ten minutes in the future: a wrong
    /// clock set that time, and the file then counts as the oldest. The clocks of two machines may differ by up to ten
    /// minutes.
    std::chrono::system_clock::time_point modified;
};

struct FileContent {
    FileInfo info; ///< describes the file that was opened and read
    Bytes bytes;
};

struct DirectoryItem {
    std::string name;
    FileType type = FileType::other;
};

/// Whether a write waits for the disk (an fsync took 7 ms on ext4 in a virtual machine). `unsynced` is for advisory
/// data and probes: a power cut may lose or truncate them.
enum class Durability : std::uint8_t { synced, unsynced };

/// An advisory lock on one file, held until this object is destroyed or the process dies.
class FileLock {
public:
    virtual ~FileLock() = default;
};

enum class LockKind : std::uint8_t { shared, exclusive };

/// Advisory locks on byte ranges of one file, which may reach past its end. They exclude the locks of every other
/// ByteLocks, in this process and in others. A range is held until it is unlocked or this object is destroyed. The
/// kernel releases it when the process and all children that it forked meanwhile have died.
class ByteLocks {
public:
    virtual ~ByteLocks() = default;
    /// Returns false if another holder's lock conflicts. Bytes that this object holds already change to `kind`.
    [[nodiscard]] virtual Result<bool> try_lock(std::uint64_t first, std::uint64_t count, LockKind kind) = 0;
    virtual void unlock(std::uint64_t first, std::uint64_t count) noexcept = 0;
};

/// Decides whether a folder may be used, by the fstat() data of the open folder. The path is for error messages.
using Admission = std::function<Result<void>(const FileInfo& folder, const std::filesystem::path& path)>;

/// Paths are absolute. Below a folder that open_folder() returned, paths are relative to that folder, and "" is the
/// folder.
class FileSystem {
public:
    using Path = std::filesystem::path;
    virtual ~FileSystem() = default;

    /// Opens a folder and keeps it open. The result reaches all files through descriptors, follows no links, and calls
    /// `admits` for this folder and each folder below that it passes. not_found: the folder does not exist.
    [[nodiscard]] virtual Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) = 0;

    /// Reads at most `limit` bytes from the start of a *regular* file. The file is opened with O_NOFOLLOW and
    /// O_NONBLOCK, so that links, FIFOs and sockets are refused and nothing hangs. nullopt: the file does not exist.
    [[nodiscard]] virtual Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) = 0;
    /// Creates `path` (must not exist) with these bytes and mode, and syncs it to the disk. Leaves no file behind on
    /// failure. If the mode allows the group access, the file gets the group of its folder.
    [[nodiscard]] virtual Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode,
                                                 Durability durability = Durability::synced) = 0;
    /// Atomically replaces `to`, then syncs the folder.
    [[nodiscard]] virtual Result<void> rename(const Path& from, const Path& to,
                                              Durability durability = Durability::synced) = 0;
    /// Removes a file or an empty folder. A missing file or folder is not a failure.
    [[nodiscard]] virtual Result<void> remove(const Path& path) = 0;
    /// Makes the folder and its parents. In an opened folder, "" makes and reopens that folder if it was removed. Any
    /// other path then fails with not_found: the user who removed the folder may not want its content back.
    [[nodiscard]] virtual Result<void> make_directories(const Path& path, std::uint32_t mode) = 0;
    /// Lists a folder, sorted by name. A missing folder gives an empty list.
    [[nodiscard]] virtual Result<std::vector<DirectoryItem>> list(const Path& path) = 0;
    [[nodiscard]] virtual Result<std::optional<FileInfo>> info(const Path& path) = 0; ///< does not follow links
    /// Sets the modification time to now (the LRU clock).
    [[nodiscard]] virtual Result<void> touch(const Path& path) = 0;
    /// Takes the lock if it is free; nullptr: another holder has it. Creates the file if it is missing. A file with
    /// further hard links keeps its mode and group; if these are wrong, a new file replaces this name. On a file system
    /// without locks every caller gets the lock.
    [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) = 0;
    /// Opens a file to lock byte ranges of it. With a mode, a missing file is created as in try_lock; without a mode, a
    /// missing file is not_found. A user who may not write the file can take shared locks only.
    [[nodiscard]] virtual Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path& path,
                                                                             std::optional<std::uint32_t> mode) = 0;
    /// The total size, in bytes, of the disk that holds the folder.
    [[nodiscard]] virtual Result<std::uint64_t> disk_bytes(const Path& folder) = 0;
};

/// The POSIX implementation; lives for the whole process.
[[nodiscard]] FileSystem& posix_file_system() noexcept;

} // namespace warmgraph
