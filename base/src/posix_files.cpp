#include "posix_files.hpp"

#include <algorithm>

#include <dirent.h>
#include <sys/file.h>
#include <sys/statvfs.h>

#include "posix_byte_locks.hpp"

namespace warmgraph::posix {
namespace {

class PosixLock final : public FileLock {
public:
    explicit PosixLock(Descriptor file) noexcept : m_file(std::move(file)), m_holder(::getpid()) {}
    ~PosixLock() override
    {
        // A child that was forked meanwhile shares the lock. Closing the file here would not release the lock, so it is
        // released explicitly; but only by the process that took it, not by the child.
        if (::getpid() == m_holder) ::flock(m_file.number(), LOCK_UN);
    }

private:
    Descriptor m_file;
    pid_t m_holder;
};

Result<Bytes> read_bytes(const Descriptor& file, std::uint64_t size, const Path& path)
{
    Bytes bytes(static_cast<std::size_t>(size));
    std::size_t have = 0;
    while (have < bytes.size()) {
        const ssize_t count = retry([&] { return ::read(file.number(), bytes.data() + have, bytes.size() - have); });
        if (count < 0) return failed("read", path, errno);
        if (count == 0) break; // the file shrank meanwhile
        have += static_cast<std::size_t>(count);
    }
    bytes.resize(have);
    return bytes;
}

Result<std::optional<FileContent>> read_at(const NameInFolder& place, std::uint64_t limit)
{
    const Descriptor file = open_at(place.at(), place.name, O_RDONLY | O_NONBLOCK);
    if (!file) {
        if (errno == ENOENT) return std::nullopt;
        if (errno == ELOOP)
            return fail(ErrorCode::io_failed, "cannot read {}: it is a link, expected a regular file",
                        place.path.string());
        return failed("read", place.path, errno);
    }
    struct stat status{};
    if (::fstat(file.number(), &status) != 0) return failed("read", place.path, errno);
    if (!S_ISREG(status.st_mode)) {
        return fail(ErrorCode::io_failed,
                    "cannot read {}: expected a regular file, it is a folder, pipe, socket or device",
                    place.path.string());
    }
    const FileInfo info = info_of(status);
    auto bytes = read_bytes(file, std::min(info.size, limit), place.path);
    if (!bytes) return std::unexpected(bytes.error());
    return FileContent{info, std::move(*bytes)};
}

Result<void> write_new_at(const NameInFolder& place, ByteView bytes, std::uint32_t mode, Durability durability)
{
    Descriptor file = open_at(place.at(), place.name, O_WRONLY | O_CREAT | O_EXCL, mode);
    if (!file) return failed("create", place.path, errno);
    const Result<void> result = [&]() -> Result<void> {
        if (auto ok = take_group_of(place.at(), file.number(), mode, place.path); !ok) return ok;
        // The umask may have removed the group's bits, which a shared cache needs.
        if (auto ok = set_mode(file.number(), mode, place.path); !ok) return ok;
        if (auto written = write_all(file.number(), place.path, bytes); !written) return written;
        if (durability == Durability::synced && retry([&] { return ::fsync(file.number()); }) != 0)
            return failed("sync", place.path, errno);
        if (file.close() != 0) return failed("close", place.path, errno);
        return {};
    }();
    if (!result) ::unlinkat(place.at(), place.name.c_str(), 0);
    return result;
}

Result<void> remove_at(const NameInFolder& place)
{
    if (::unlinkat(place.at(), place.name.c_str(), 0) == 0 || errno == ENOENT) return {};
    const int error = errno;
    if (error != EISDIR && error != EPERM) return failed("remove", place.path, error);
    if (::unlinkat(place.at(), place.name.c_str(), AT_REMOVEDIR) == 0 || errno == ENOENT) return {};
    return failed("remove", place.path, errno == ENOTDIR ? error : errno);
}

FileType type_at(const Descriptor& folder, const char* name)
{
    struct stat status{};
    if (::fstatat(folder.number(), name, &status, AT_SYMLINK_NOFOLLOW) != 0) return FileType::other;
    return info_of(status).type;
}

std::optional<FileType> known_type(unsigned char type) noexcept
{
    if (type == DT_UNKNOWN) return std::nullopt;
    return type == DT_REG ? FileType::regular : type == DT_DIR ? FileType::directory : FileType::other;
}

/// True if flock() failed because this file system has no locks (NFS without lockd, Lustre without its option, FUSE).
bool has_no_locks(int error) noexcept { return error == ENOLCK || error == ENOSYS || error == EOPNOTSUPP; }

Result<std::unique_ptr<FileLock>> try_lock_at(const NameInFolder& place, std::uint32_t mode)
{
    // If the file was removed between open() and flock(), the lock protects nothing: try again.
    for (int round = 0; round < k_lock_rounds; ++round) {
        Descriptor file = open_at(place.at(), place.name, O_RDWR | O_CREAT | O_NONBLOCK, mode);
        if (!file) return failed("lock", place.path, errno);
        struct stat locked{};
        if (::fstat(file.number(), &locked) != 0) return failed("lock", place.path, errno);
        if (!S_ISREG(locked.st_mode))
            return fail(ErrorCode::io_failed, "cannot lock {}: expected a regular file", place.path.string());
        const auto is_ours = make_lock_file_ours(place, file, locked, mode);
        if (!is_ours) return std::unexpected(is_ours.error());
        if (!*is_ours) continue;
        if (retry([&] { return ::flock(file.number(), LOCK_EX | LOCK_NB); }) != 0) {
            if (errno == EWOULDBLOCK) return nullptr;
            if (!has_no_locks(errno)) return failed("lock", place.path, errno);
        }
        struct stat present{};
        if (::fstatat(place.at(), place.name.c_str(), &present, AT_SYMLINK_NOFOLLOW) == 0 &&
            present.st_dev == locked.st_dev && present.st_ino == locked.st_ino)
            return std::make_unique<PosixLock>(std::move(file));
    }
    return replaced_again_and_again(place);
}

} // namespace

Result<bool> make_lock_file_ours(const NameInFolder& place, const Descriptor& file, const struct stat& status,
                                 std::uint32_t mode)
{
    if (status.st_uid != ::geteuid()) return true;
    const bool has_mode = (status.st_mode & 07777) == mode;
    if (status.st_nlink > 1) {
        struct stat folder{};
        if (::fstat(place.at(), &folder) != 0) return failed("inspect", place.path, errno);
        if (has_mode && (!is_for_group(mode) || status.st_gid == folder.st_gid)) return true; // e.g. a hard-linked file
        if (auto removed = remove_at(place); !removed) return std::unexpected(removed.error());
        return false;
    }
    if (auto ok = take_group_of(place.at(), file.number(), mode, place.path); !ok) return std::unexpected(ok.error());
    if (auto ok = set_mode(file.number(), mode, place.path); !ok) return std::unexpected(ok.error());
    return true;
}

std::unexpected<Error> replaced_again_and_again(const NameInFolder& place)
{
    return fail(ErrorCode::io_failed, "cannot lock {}: other processes remove it again and again", place.path.string());
}

Result<std::vector<DirectoryItem>> items_of(const Descriptor& folder, const Path& path)
{
    const int own = ::fcntl(folder.number(), F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    if (own < 0) return failed("list", path, errno);
    const std::unique_ptr<DIR, decltype([](DIR* open) { ::closedir(open); })> stream(::fdopendir(own));
    if (!stream) {
        const int error = errno;
        ::close(own);
        return failed("list", path, error);
    }
    std::vector<DirectoryItem> items;
    while (true) {
        errno = 0;
        const dirent* const item = ::readdir(stream.get());
        if (item == nullptr) break;
        const std::string name = item->d_name;
        if (name == "." || name == "..") continue;
        const auto known = known_type(item->d_type);
        items.push_back({name, known ? *known : type_at(folder, item->d_name)});
    }
    if (errno != 0) return failed("list", path, errno);
    std::ranges::sort(items, {}, &DirectoryItem::name);
    return items;
}

Result<std::uint64_t> disk_bytes_of(const Descriptor& folder, const Path& path)
{
    struct statvfs disk{};
    if (::fstatvfs(folder.number(), &disk) != 0) return failed("inspect the disk of", path, errno);
    return std::uint64_t{disk.f_blocks} * disk.f_frsize;
}

Result<std::optional<FileContent>> FilesByDescriptor::read(const Path& path, std::uint64_t limit)
{
    const auto place = find(path);
    if (!place && is_missing(place.error())) return std::nullopt;
    if (!place) return std::unexpected(place.error());
    return read_at(*place, limit);
}

Result<void> FilesByDescriptor::write_new(const Path& path, ByteView bytes, std::uint32_t mode, Durability durability)
{
    const auto place = find(path);
    return place ? write_new_at(*place, bytes, mode, durability) : std::unexpected(place.error());
}

Result<void> FilesByDescriptor::rename(const Path& from, const Path& to, Durability durability)
{
    const auto source = find(from);
    if (!source) return std::unexpected(source.error());
    const auto target = find(to);
    if (!target) return std::unexpected(target.error());
    if (::renameat(source->at(), source->name.c_str(), target->at(), target->name.c_str()) != 0)
        return failed(fmt::format("rename {} to", source->path.string()), target->path, errno);
    if (durability == Durability::unsynced) return {};
    // `target` was opened for lookups only and cannot be synced: open the folder again.
    const Path folder = target->path.parent_path();
    const Descriptor names = open_folder_at(target->at(), ".");
    return names ? sync_folder(names.number(), folder) : failed("open folder", folder, errno);
}

Result<void> FilesByDescriptor::remove(const Path& path)
{
    const auto place = find(path);
    if (place) return remove_at(*place);
    return is_missing(place.error()) ? Result<void>{} : std::unexpected(place.error());
}

Result<std::optional<FileInfo>> FilesByDescriptor::info(const Path& path)
{
    const auto place = find(path);
    if (!place && is_missing(place.error())) return std::nullopt;
    if (!place) return std::unexpected(place.error());
    struct stat status{};
    if (::fstatat(place->at(), place->name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0) return info_of(status);
    if (errno == ENOENT) return std::nullopt;
    return failed("inspect", place->path, errno);
}

Result<void> FilesByDescriptor::touch(const Path& path)
{
    const auto place = find(path);
    if (!place) return std::unexpected(place.error());
    if (::utimensat(place->at(), place->name.c_str(), nullptr, AT_SYMLINK_NOFOLLOW) != 0)
        return failed("touch", place->path, errno);
    return {};
}

Result<std::unique_ptr<FileLock>> FilesByDescriptor::try_lock(const Path& path, std::uint32_t mode)
{
    const auto place = find(path);
    return place ? try_lock_at(*place, mode) : std::unexpected(place.error());
}

Result<std::unique_ptr<ByteLocks>> FilesByDescriptor::open_byte_locks(const Path& path,
                                                                      std::optional<std::uint32_t> mode)
{
    const auto place = find(path);
    return place ? open_byte_locks_at(*place, mode) : std::unexpected(place.error());
}

} // namespace warmgraph::posix
