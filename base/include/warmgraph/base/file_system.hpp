// The seam for files: every access to the cache folder goes through a FileSystem, so that tests can
// make the Nth operation fail, cut the power, fill the disk, or put somebody else's folder there.
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
    std::uint64_t inode = 0; ///< another one: another file
    /// A time that is later than now by more than ten minutes was set by a wrong clock: it is the epoch here, and so the
    /// oldest of all. Within ten minutes the clocks of two machines may differ.
    std::chrono::system_clock::time_point modified;
};

struct FileContent {
    FileInfo info; ///< of the very file that was read
    Bytes bytes;
};

struct DirectoryItem {
    std::string name;
    FileType type = FileType::other;
};

/// Whether a write waits for the disk (one fsync was 7 ms on ext4 in a virtual machine). Unsynced is for advisory data
/// and probes: a power cut may lose or tear it.
enum class Durability : std::uint8_t { synced, unsynced };

/// An advisory lock on one file, held until destroyed; the kernel releases it when the process dies.
class FileLock {
public:
    virtual ~FileLock() = default;
};

enum class LockKind : std::uint8_t { shared, exclusive };

/// Advisory locks on bytes of one file, whatever its size: as many as wanted through one open file. They exclude those of
/// every other ByteLocks, in this process and others. Held until unlocked or destroyed; the kernel releases them when the
/// process dies, or the last child that it forked meanwhile.
class ByteLocks {
public:
    virtual ~ByteLocks() = default;
    /// False: somebody else holds one in the way. Bytes that are held already get this kind.
    [[nodiscard]] virtual Result<bool> try_lock(std::uint64_t first, std::uint64_t count, LockKind kind) = 0;
    virtual void unlock(std::uint64_t first, std::uint64_t count) noexcept = 0;
};

/// May this folder be used? Asked with what fstat() says of the folder that is open, and its path for a message.
using Admission = std::function<Result<void>(const FileInfo& folder, const std::filesystem::path& path)>;

/// Paths are absolute; in a folder that open_folder() gave they are relative to it, and "" is the folder itself.
class FileSystem {
public:
    using Path = std::filesystem::path;
    virtual ~FileSystem() = default;

    /// Opens a folder for good. What it gives reaches everything by descriptor, name by name from this folder down: it
    /// follows no link, and asks `admits` about this folder and each that it goes through. not_found: there is none.
    [[nodiscard]] virtual Result<std::unique_ptr<FileSystem>> open_folder(const Path& path, Admission admits) = 0;

    /// At most `limit` bytes from the start (`offset` 0) of a *regular* file, opened with O_NOFOLLOW and
    /// O_NONBLOCK so that links, FIFOs and sockets are refused and nothing hangs. nullopt: there is none.
    [[nodiscard]] virtual Result<std::optional<FileContent>> read(const Path& path, std::uint64_t limit) = 0;
    /// Creates `path` (must not exist) with these bytes and mode, and syncs it to the disk. Leaves nothing on failure. A
    /// file that its group may use gets the group of its folder.
    [[nodiscard]] virtual Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode,
                                                 Durability durability = Durability::synced) = 0;
    /// Atomically replaces `to`, then syncs the folder.
    [[nodiscard]] virtual Result<void> rename(const Path& from, const Path& to,
                                              Durability durability = Durability::synced) = 0;
    /// Removes a file or an empty folder. A missing one is no failure.
    [[nodiscard]] virtual Result<void> remove(const Path& path) = 0;
    /// Makes the folder and its parents. "" in an opened folder: makes and opens that one again where it was removed; any other
    /// path is not_found then, since whoever removed it may not want what lies below.
    [[nodiscard]] virtual Result<void> make_directories(const Path& path, std::uint32_t mode) = 0;
    /// Sorted by name; a missing folder lists as empty.
    [[nodiscard]] virtual Result<std::vector<DirectoryItem>> list(const Path& path) = 0;
    [[nodiscard]] virtual Result<std::optional<FileInfo>> info(const Path& path) = 0; ///< does not follow links
    /// Sets the modification time to now (the LRU clock).
    [[nodiscard]] virtual Result<void> touch(const Path& path) = 0;
    /// Takes the lock if it is free; nullptr: somebody else holds it. The file is made when missing. A file that another
    /// name leads to keeps its mode and group: where they are not these, a new file takes its place. A file system without
    /// locks gives the lock to everybody who asks.
    [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) = 0;
    /// Opens a file to lock bytes of it. With a mode it is made when missing, as in try_lock; without one a missing file is
    /// not_found. Who may not write the file takes shared locks only.
    [[nodiscard]] virtual Result<std::unique_ptr<ByteLocks>> open_byte_locks(const Path& path,
                                                                             std::optional<std::uint32_t> mode) = 0;
    /// Bytes of the disk that the folder is on, full or free.
    [[nodiscard]] virtual Result<std::uint64_t> disk_bytes(const Path& folder) = 0;
};

/// The real one (POSIX); lives for the whole process.
[[nodiscard]] FileSystem& posix_file_system() noexcept;

} // namespace warmgraph
