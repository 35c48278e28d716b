#include "posix_byte_locks.hpp"

namespace warmgraph::posix {
namespace {

class PosixByteLocks final : public ByteLocks {
public:
    PosixByteLocks(Descriptor file, Path path) : m_file(std::move(file)), m_path(std::move(path)) {}

    Result<bool> try_lock(std::uint64_t first, std::uint64_t count, LockKind kind) override
    {
        if (set(first, count, kind == LockKind::shared ? F_RDLCK : F_WRLCK)) return true;
        if (errno == EAGAIN || errno == EACCES) return false;
        return failed("lock bytes of", m_path, errno);
    }
    void unlock(std::uint64_t first, std::uint64_t count) noexcept override
    {
        static_cast<void>(set(first, count, F_UNLCK));
    }

private:
    bool set(std::uint64_t first, std::uint64_t count, int type) const noexcept
    {
        struct flock lock{};
        lock.l_type = static_cast<short>(type);
        lock.l_whence = SEEK_SET;
        lock.l_start = static_cast<off_t>(first);
        lock.l_len = static_cast<off_t>(count);
        return retry([&] { return ::fcntl(m_file.number(), F_OFD_SETLK, &lock); }) == 0;
    }

    Descriptor m_file;
    Path m_path;
};

Descriptor open_for_locks(const NameInFolder& place, std::optional<std::uint32_t> mode)
{
    if (mode) return open_at(place.at(), place.name, O_RDWR | O_CREAT | O_NONBLOCK, *mode);
    Descriptor file = open_at(place.at(), place.name, O_RDWR | O_NONBLOCK);
    if (file || (errno != EACCES && errno != EROFS)) return file;
    return open_at(place.at(), place.name, O_RDONLY | O_NONBLOCK);
}

} // namespace

Result<std::unique_ptr<ByteLocks>> open_byte_locks_at(const NameInFolder& place, std::optional<std::uint32_t> mode)
{
    for (int round = 0; round < k_lock_rounds; ++round) {
        Descriptor file = open_for_locks(place, mode);
        struct stat status{};
        if (!file || ::fstat(file.number(), &status) != 0) return failed("open", place.path, errno);
        if (!S_ISREG(status.st_mode))
            return fail(ErrorCode::io_failed, "cannot lock {}: expected a regular file", place.path.string());
        const auto is_ours = mode ? make_lock_file_ours(place, file, status, *mode) : Result<bool>{true};
        if (!is_ours) return std::unexpected(is_ours.error());
        if (*is_ours) return std::make_unique<PosixByteLocks>(std::move(file), place.path);
    }
    return replaced_again_and_again(place);
}

} // namespace warmgraph::posix
