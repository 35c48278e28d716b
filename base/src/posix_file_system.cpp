#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/file_system.hpp"

namespace warmgraph {
namespace {

using Path = FileSystem::Path;

std::unexpected<Error> failed(const char* doing, const Path& path, int error)
{
    const ErrorCode code = [error] {
        switch (error) {
        case ENOSPC:
        case EDQUOT: return ErrorCode::no_space;
        case EACCES:
        case EPERM:
        case EROFS: return ErrorCode::permission_denied;
        case ENOENT: return ErrorCode::not_found;
        default: return ErrorCode::io_failed;
        }
    }();
    return fail(code, "cannot {} {}: {}", doing, path.string(), std::generic_category().message(error));
}

/// One file descriptor, closed once.
class Descriptor {
public:
    explicit Descriptor(int number) noexcept : m_number(number) {}
    Descriptor(Descriptor&& other) noexcept : m_number(std::exchange(other.m_number, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor()
    {
        if (m_number >= 0) ::close(m_number);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return m_number >= 0; }
    [[nodiscard]] int number() const noexcept { return m_number; }
    /// close() reports a late write failure on network file systems.
    [[nodiscard]] int close() noexcept { return ::close(std::exchange(m_number, -1)); }

private:
    int m_number;
};

template <class Call>
auto retry(Call call)
{
    auto result = call();
    while (result == -1 && errno == EINTR) result = call();
    return result;
}

Descriptor open_file(const Path& path, int flags, mode_t mode = 0)
{
    return Descriptor(retry([&] { return ::open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode); }));
}

/// Makes names in a folder survive a power cut. Some file systems cannot sync a folder and say EINVAL.
Result<void> sync_folder(const Path& folder)
{
    // Not O_NOFOLLOW: the cache folder itself may be reached through a link.
    const Descriptor file(retry([&] { return ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC); }));
    if (!file) return failed("open folder", folder, errno);
    if (retry([&] { return ::fsync(file.number()); }) != 0 && errno != EINVAL)
        return failed("sync folder", folder, errno);
    return {};
}

Result<void> write_all(const Descriptor& file, const Path& path, ByteView bytes)
{
    while (!bytes.empty()) {
        const ssize_t count = retry([&] { return ::write(file.number(), bytes.data(), bytes.size()); });
        if (count < 0) return failed("write", path, errno);
        bytes = bytes.subspan(static_cast<std::size_t>(count));
    }
    return {};
}

FileType type_of(mode_t mode) noexcept
{
    return S_ISREG(mode) ? FileType::regular : S_ISDIR(mode) ? FileType::directory : FileType::other;
}

std::chrono::system_clock::time_point time_of(const timespec& time)
{
    const auto since_epoch = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    return std::chrono::system_clock::time_point(
        std::chrono::duration_cast<std::chrono::system_clock::duration>(since_epoch));
}

class PosixLock final : public FileLock {
public:
    explicit PosixLock(Descriptor file) noexcept : m_file(std::move(file)), m_holder(::getpid()) {}
    ~PosixLock() override
    {
        // A child forked meanwhile shares the lock: closing here would not release it, and the child must not
        // release it for its parent.
        if (::getpid() == m_holder) ::flock(m_file.number(), LOCK_UN);
    }

private:
    Descriptor m_file;
    pid_t m_holder;
};

class PosixFileSystem final : public FileSystem {
public:
    Result<std::optional<Bytes>> read(const Path& path, std::uint64_t limit) override;
    Result<void> write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability) override;
    Result<void> rename(const Path& from, const Path& to, Durability durability) override;
    Result<void> remove(const Path& path) override;
    Result<void> make_directories(const Path& path, std::uint32_t mode) override;
    Result<std::vector<DirectoryItem>> list(const Path& path) override;
    Result<std::optional<FileInfo>> info(const Path& path) override;
    Result<void> touch(const Path& path) override;
    Result<std::unique_ptr<FileLock>> try_lock(const Path& path, std::uint32_t mode) override;
};

Result<std::optional<Bytes>> PosixFileSystem::read(const Path& path, std::uint64_t limit)
{
    const Descriptor file = open_file(path, O_RDONLY | O_NONBLOCK);
    if (!file) {
        if (errno == ENOENT) return std::nullopt;
        if (errno == ELOOP)
            return fail(ErrorCode::io_failed, "cannot read {}: it is a link, expected a regular file", path.string());
        return failed("read", path, errno);
    }
    struct stat status{};
    if (::fstat(file.number(), &status) != 0) return failed("read", path, errno);
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::io_failed,
                    "cannot read {}: expected a regular file, it is a folder, pipe, socket or device", path.string());
    }
    Bytes bytes(static_cast<std::size_t>(std::min<std::uint64_t>(static_cast<std::uint64_t>(status.st_size), limit)));
    std::size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t count = retry([&] { return ::read(file.number(), bytes.data() + have, bytes.size() - have); });
        if (count < 0) return failed("read", path, errno);
        if (count == 0) break; // it shrank meanwhile
        have += static_cast<std::size_t>(count);
    }
    bytes.resize(have);
    return bytes;
}

Result<void> PosixFileSystem::write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability)
{
    Descriptor file = open_file(path, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (!file) return failed("create", path, errno);
    const Result<void> result = [&]() -> Result<void> {
        // The umask would take the group's bits from a shared cache.
        if (::fchmod(file.number(), mode) != 0) return failed("set the mode of", path, errno);
        if (auto written = write_all(file, path, bytes); !written) return written;
        if (durability == Durability::synced && retry([&] { return ::fsync(file.number()); }) != 0) {
            return failed("sync", path, errno);
        }
        if (file.close() != 0) return failed("close", path, errno);
        return {};
    }();
    if (!result) ::unlink(path.c_str());
    return result;
}

Result<void> PosixFileSystem::rename(const Path& from, const Path& to, Durability durability)
{
    if (::rename(from.c_str(), to.c_str()) != 0) {
        return failed(fmt::format("rename {} to", from.string()).c_str(), to, errno);
    }
    return durability == Durability::synced ? sync_folder(to.parent_path()) : Result<void>{};
}

Result<void> PosixFileSystem::remove(const Path& path)
{
    if (std::remove(path.c_str()) != 0 && errno != ENOENT) return failed("remove", path, errno);
    return {};
}

Result<void> PosixFileSystem::make_directories(const Path& path, std::uint32_t mode)
{
    struct stat status{};
    if (::stat(path.c_str(), &status) == 0) {
        return S_ISDIR(status.st_mode) ? Result<void>{} : failed("make folder", path, ENOTDIR);
    }
    if (errno != ENOENT) return failed("make folder", path, errno);
    if (path.has_relative_path()) {
        if (auto parent = make_directories(path.parent_path(), mode); !parent) return parent;
    }
    if (::mkdir(path.c_str(), mode & 0777) != 0) {
        if (errno != EEXIST) return failed("make folder", path, errno);
        // Somebody else made it first, and sets its mode; or a dangling link is in the way.
        if (::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode)) return {};
        const bool gone = ::lstat(path.c_str(), &status) != 0 && errno == ENOENT; // removed since
        return failed("make folder", path, gone ? ENOENT : ENOTDIR);
    }
    // mkdir() obeys the umask and drops the set-group-id bit.
    if (::chmod(path.c_str(), mode) != 0) return failed("set the mode of", path, errno);
    return sync_folder(path.parent_path());
}

Result<std::vector<DirectoryItem>> PosixFileSystem::list(const Path& path)
{
    std::vector<DirectoryItem> items;
    std::error_code error;
    std::filesystem::directory_iterator item(path, error);
    for (; !error && item != std::filesystem::directory_iterator(); item.increment(error)) {
        std::error_code vanished;
        const auto type = item->symlink_status(vanished).type();
        if (type == std::filesystem::file_type::not_found) continue;
        items.push_back(
            {item->path().filename().string(), type == std::filesystem::file_type::regular     ? FileType::regular
                                               : type == std::filesystem::file_type::directory ? FileType::directory
                                                                                               : FileType::other});
    }
    if (error && error.value() != ENOENT) return failed("list", path, error.value());
    std::ranges::sort(items, {}, &DirectoryItem::name);
    return items;
}

Result<std::optional<FileInfo>> PosixFileSystem::info(const Path& path)
{
    struct stat status{};
    if (::lstat(path.c_str(), &status) != 0) {
        if (errno == ENOENT) return std::nullopt;
        return failed("inspect", path, errno);
    }
    return FileInfo{type_of(status.st_mode),
                    static_cast<std::uint64_t>(status.st_size),
                    static_cast<std::uint32_t>(status.st_mode & 07777),
                    status.st_uid,
                    status.st_ino,
                    time_of(status.st_mtim)};
}

Result<void> PosixFileSystem::touch(const Path& path)
{
    if (::utimensat(AT_FDCWD, path.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0) return failed("touch", path, errno);
    return {};
}

Result<std::unique_ptr<FileLock>> PosixFileSystem::try_lock(const Path& path, std::uint32_t mode)
{
    // A file that was removed between open() and flock() locks nobody out: look again. Each round means that
    // somebody removed it meanwhile, so the number of rounds is only a guard against a folder gone mad.
    for (int round = 0; round < 16; ++round) {
        Descriptor file = open_file(path, O_RDWR | O_CREAT | O_NONBLOCK, mode);
        if (!file) return failed("lock", path, errno);
        struct stat locked{};
        if (::fstat(file.number(), &locked) != 0) return failed("lock", path, errno);
        if (!S_ISREG(locked.st_mode))
            return fail(ErrorCode::io_failed, "cannot lock {}: expected a regular file", path.string());
        if (locked.st_uid == ::geteuid() && (locked.st_mode & 07777) != mode && ::fchmod(file.number(), mode) != 0) {
            return failed("set the mode of", path, errno);
        }
        if (retry([&] { return ::flock(file.number(), LOCK_EX | LOCK_NB); }) != 0) {
            if (errno == EWOULDBLOCK) return nullptr;
            return failed("lock", path, errno);
        }
        struct stat present{};
        if (::lstat(path.c_str(), &present) == 0 && present.st_dev == locked.st_dev &&
            present.st_ino == locked.st_ino) {
            return std::make_unique<PosixLock>(std::move(file));
        }
    }
    return fail(ErrorCode::io_failed, "cannot lock {}: it is removed again and again", path.string());
}

} // namespace

FileSystem& posix_file_system() noexcept
{
    static PosixFileSystem& files = *new PosixFileSystem; // never destroyed: threads may outlive main()
    return files;
}

} // namespace warmgraph
