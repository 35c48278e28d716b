// The seam for files: every access to the cache folder goes through a FileSystem, so that tests can
// make the Nth operation fail, cut the power, or fill the disk.
//
// Thread-safe. Paths are absolute. Failures carry errno's text and map to io_failed, no_space,
// permission_denied or not_found.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
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
    std::uint64_t inode = 0; ///< another one: another file
    std::chrono::system_clock::time_point modified;
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

class FileSystem {
public:
    using Path = std::filesystem::path;
    virtual ~FileSystem() = default;

    /// At most `limit` bytes from the start (`offset` 0) of a *regular* file, opened with O_NOFOLLOW and
    /// O_NONBLOCK so that links, FIFOs and sockets are refused and nothing hangs. nullopt: there is none.
    [[nodiscard]] virtual Result<std::optional<Bytes>> read(const Path& path, std::uint64_t limit) = 0;
    /// Creates `path` (must not exist) with these bytes and mode, and syncs it to the disk. Leaves nothing on failure.
    [[nodiscard]] virtual Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode,
                                                 Durability durability = Durability::synced) = 0;
    /// Atomically replaces `to`, then syncs the folder.
    [[nodiscard]] virtual Result<void> rename(const Path& from, const Path& to,
                                              Durability durability = Durability::synced) = 0;
    /// Removes a file or an empty folder. A missing one is no failure.
    [[nodiscard]] virtual Result<void> remove(const Path& path) = 0;
    /// Makes the folder and its parents.
    [[nodiscard]] virtual Result<void> make_directories(const Path& path, std::uint32_t mode) = 0;
    /// Sorted by name; a missing folder lists as empty.
    [[nodiscard]] virtual Result<std::vector<DirectoryItem>> list(const Path& path) = 0;
    [[nodiscard]] virtual Result<std::optional<FileInfo>> info(const Path& path) = 0; ///< does not follow links
    /// Sets the modification time to now (the LRU clock).
    [[nodiscard]] virtual Result<void> touch(const Path& path) = 0;
    /// Takes the lock if it is free; nullptr: somebody else holds it. The file is made when missing.
    [[nodiscard]] virtual Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) = 0;
};

/// The real one (POSIX); lives for the whole process.
[[nodiscard]] FileSystem& posix_file_system() noexcept;

} // namespace warmgraph
