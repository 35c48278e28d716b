#include "posix_descriptor.hpp"

#include <ctime>
#include <system_error>

#include <pthread.h>
#include <signal.h>

#include "warmgraph/base/output_file.hpp"

namespace warmgraph::posix {
namespace {

/// Blocks SIGXFSZ, which the kernel sends to a thread that writes too much. The destructor removes a signal that our
/// write raised.
class NoFileSizeSignal {
public:
    NoFileSizeSignal() noexcept
    {
        ::sigemptyset(&m_signal);
        ::sigaddset(&m_signal, SIGXFSZ);
        sigset_t pending;
        m_was_pending = ::sigpending(&pending) == 0 && ::sigismember(&pending, SIGXFSZ) == 1;
        m_is_blocked = ::pthread_sigmask(SIG_BLOCK, &m_signal, &m_before) == 0;
    }
    NoFileSizeSignal(const NoFileSizeSignal&) = delete;
    NoFileSizeSignal& operator=(const NoFileSizeSignal&) = delete;
    ~NoFileSizeSignal()
    {
        if (!m_is_blocked) return;
        const timespec no_time{};
        if (m_was_raised && !m_was_pending) retry([&] { return ::sigtimedwait(&m_signal, nullptr, &no_time); });
        ::pthread_sigmask(SIG_SETMASK, &m_before, nullptr);
    }
    /// Call this when a write failed with EFBIG.
    void note_raised() noexcept { m_was_raised = true; }

private:
    sigset_t m_signal{};
    sigset_t m_before{};
    bool m_was_pending = false;
    bool m_is_blocked = false;
    bool m_was_raised = false;
};

FileType type_of(mode_t mode) noexcept
{
    return S_ISREG(mode) ? FileType::regular : S_ISDIR(mode) ? FileType::directory : FileType::other;
}

std::chrono::system_clock::time_point time_of(const timespec& time)
{
    using Clock = std::chrono::system_clock;
    constexpr std::chrono::minutes k_most_ahead{10};
    const auto since_epoch = std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
    const Clock::time_point told{std::chrono::duration_cast<Clock::duration>(since_epoch)};
    return told > Clock::now() + k_most_ahead ? Clock::time_point{} : told;
}

ErrorCode code_of(int error) noexcept
{
    switch (error) {
    case ENOSPC:
    case EDQUOT: return ErrorCode::no_space;
    case EACCES:
    case EPERM:
    case EROFS: return ErrorCode::permission_denied;
    case ENOENT: return ErrorCode::not_found;
    default: return ErrorCode::io_failed;
    }
}

/// Fails unless the name is a folder, or a link to a folder; the caller that opens it decides about links.
Result<void> require_folder(int parent, const std::string& name, const Path& path)
{
    struct stat status{};
    if (::fstatat(parent, name.c_str(), &status, 0) == 0)
        return S_ISDIR(status.st_mode) ? Result<void>{} : failed("make folder", path, ENOTDIR);
    const bool is_gone = errno == ENOENT && ::fstatat(parent, name.c_str(), &status, AT_SYMLINK_NOFOLLOW) != 0;
    return failed("make folder", path, is_gone ? ENOENT : ENOTDIR);
}

Result<void> set_mode_of_new_folder(int parent, const std::string& name, std::uint32_t mode, const Path& path)
{
    const Descriptor folder = open_folder_at(parent, name);
    struct stat status{};
    if (!folder && errno == ENOENT) return failed("make folder", path, ENOENT); // another process removed it meanwhile
    if (!folder || ::fstat(folder.number(), &status) != 0 || status.st_uid != ::geteuid())
        return fail(ErrorCode::permission_denied,
                    "cannot make folder {}: another process put another folder, or a link, in its place",
                    path.string());
    if (auto ok = take_group_of(parent, folder.number(), mode, path); !ok) return ok;
    // mkdir() obeys the umask and drops the set-group-id bit.
    return set_mode(folder.number(), mode, path);
}

} // namespace

std::unexpected<Error> failed(std::string_view doing, const Path& path, int error)
{
    return fail(code_of(error), "cannot {} {}: {}", doing, path.string(), std::generic_category().message(error));
}

Descriptor open_at(int folder, const std::string& name, int flags, mode_t mode)
{
    return Descriptor(retry([&] { return ::openat(folder, name.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, mode); }));
}

Descriptor open_folder_at(int folder, const std::string& name) { return open_at(folder, name, O_RDONLY | O_DIRECTORY); }

FileInfo info_of(const struct stat& status)
{
    return {type_of(status.st_mode),
            static_cast<std::uint64_t>(status.st_size),
            static_cast<std::uint32_t>(status.st_mode & 07777),
            status.st_uid,
            status.st_gid,
            status.st_ino,
            time_of(status.st_mtim)};
}

Result<void> sync_folder(int folder, const Path& path)
{
    if (retry([&] { return ::fsync(folder); }) != 0 && errno != EINVAL) return failed("sync folder", path, errno);
    return {};
}

Result<void> write_all(int file, const Path& path, ByteView bytes)
{
    NoFileSizeSignal no_signal;
    const int error = warmgraph::write_all(file, bytes);
    if (error == EFBIG) no_signal.note_raised();
    return error == 0 ? Result<void>{} : failed("write", path, error);
}

Result<void> make_folder_at(int parent, const std::string& name, std::uint32_t mode, const Path& path)
{
    if (::mkdirat(parent, name.c_str(), mode & 0777) != 0) {
        if (errno != EEXIST) return failed("make folder", path, errno);
        return require_folder(parent, name, path);
    }
    if (auto ok = set_mode_of_new_folder(parent, name, mode, path); !ok) return ok;
    return sync_folder(parent, path.parent_path());
}

Result<void> set_mode(int file, std::uint32_t mode, const Path& path)
{
    struct stat status{};
    if (::fstat(file, &status) != 0) return failed("inspect", path, errno);
    if ((status.st_mode & 07777) == mode || ::fchmod(file, mode) == 0) return {};
    return failed("set the mode of", path, errno);
}

Result<void> take_group_of(int folder, int file, std::uint32_t mode, const Path& path)
{
    if (!is_for_group(mode)) return {};
    struct stat of_folder{}, of_file{};
    if (::fstat(folder, &of_folder) != 0 || ::fstat(file, &of_file) != 0) return failed("inspect", path, errno);
    if (of_folder.st_gid == of_file.st_gid) return {};
    if (::fchown(file, static_cast<uid_t>(-1), of_folder.st_gid) != 0) return failed("set the group of", path, errno);
    return {};
}

} // namespace warmgraph::posix
