#include "posix_byte_locks.hpp"

namespace warmgraph::posix {
namespace {

class PosixByteLocks final : public ByteLocks {
public:
    PosixByteLocks(Descriptor file, Path path) : m_file(std::move(file)), m_path(std::move(path)) {}

    Result<bool> try_lock(std::uint64_t byte, LockKind kind) override
    {
        if (set(byte, kind == LockKind::shared ? F_RDLCK : F_WRLCK)) return true;
        if (errno == EAGAIN || errno == EACCES) return false;
        return failed("lock a byte of", m_path, errno);
    }
    void unlock(std::uint64_t byte) noexcept override { static_cast<void>(set(byte, F_UNLCK)); }

private:
    bool set(std::uint64_t byte, int type) const noexcept
    {
        struct flock lock{};
        lock.l_type = static_cast<short>(type);
        lock.l_whence = SEEK_SET;
        lock.l_start = static_cast<off_t>(byte);
        lock.l_len = 1;
        return retry([&] { return ::fcntl(m_file.number(), F_OFD_SETLK, &lock); }) == 0;
    }

    Descriptor m_file;
    Path m_path;
};

Descriptor open_for_locks(const Place& place, std::optional<std::uint32_t> mode)
{
    if (!mode) return open_at(place.at(), place.name, O_RDONLY | O_NONBLOCK);
    return open_at(place.at(), place.name, O_RDWR | O_CREAT | O_NONBLOCK, *mode);
}

} // namespace

Result<std::unique_ptr<ByteLocks>> open_byte_locks_at(const Place& place, std::optional<std::uint32_t> mode)
{
    Descriptor file = open_for_locks(place, mode);
    struct stat status{};
    if (!file || ::fstat(file.number(), &status) != 0) return failed("open", place.path, errno);
    if (!S_ISREG(status.st_mode))
        return fail(ErrorCode::io_failed, "cannot lock {}: expected a regular file", place.path.string());
    if (mode && status.st_uid == ::geteuid() && (status.st_mode & 07777) != *mode) {
        if (auto ok = take_group_of(place.at(), file.number(), *mode, place.path); !ok)
            return std::unexpected(ok.error());
        if (auto ok = set_mode(file.number(), *mode, place.path); !ok) return std::unexpected(ok.error());
    }
    return std::make_unique<PosixByteLocks>(std::move(file), place.path);
}

} // namespace warmgraph::posix
