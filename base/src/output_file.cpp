#include "warmgraph/base/output_file.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/process.hpp"

namespace warmgraph {

namespace fs = std::filesystem;

struct OutputFile::Impl {
    std::string name;             ///< the path as the user wrote it
    fs::path target{}, temporary; ///< `temporary` is empty if the target is not a regular file
    int file = -1;
    std::uint64_t size = 0;

    Impl(std::string given, fs::path at, fs::path made)
        : name(std::move(given)), target(std::move(at)), temporary(std::move(made))
    {
    }
    Impl(const Impl&) = delete;
    Impl& operator=(const Impl&) = delete;
    ~Impl()
    {
        if (file >= 0) ::close(file);
        if (!temporary.empty()) ::unlink(temporary.c_str());
    }
};

namespace {

std::unexpected<Error> cannot_write(const std::string& name, int error)
{
    const auto code = error == ENOSPC || error == EDQUOT                    ? ErrorCode::no_space
                      : error == EACCES || error == EROFS || error == EPERM ? ErrorCode::permission_denied
                                                                            : ErrorCode::io_failed;
    return fail(code, "cannot write '{}': {}", name, std::strerror(error));
}

/// Copies a whole file into a file that cannot be replaced by a rename.
Result<void> copy(int from, int to, const std::string& name)
{
    Bytes part(std::size_t{1} << 20);
    for (off_t at = 0;;) {
        const ssize_t got = ::pread(from, part.data(), part.size(), at);
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return cannot_write(name, errno);
        if (got == 0) return {};
        if (const int error = write_all(to, ByteView(part).first(static_cast<std::size_t>(got))))
            return cannot_write(name, error);
        at += got;
    }
}

/// Returns the target of a link, or the path itself if it is not a link.
Result<fs::path> behind_links(const fs::path& path)
{
    std::error_code failed;
    if (!fs::is_symlink(fs::symlink_status(path, failed))) return path;
    auto target = fs::canonical(path, failed);
    if (failed)
        return fail(ErrorCode::invalid_argument, "'{}' is a link to '{}', which does not exist: name the file itself",
                    path.string(), fs::read_symlink(path, failed).string());
    return target;
}

} // namespace

Result<int> open_unnamed_file()
{
    std::error_code failed;
    const fs::path folder = fs::temp_directory_path(failed);
    if (failed)
        return fail(ErrorCode::io_failed, "there is no folder for temporary files: set TMPDIR to an existing folder");
    std::string name = (folder / "warmgraph-XXXXXX").string();
    const int file = above_standard_streams(::mkostemp(name.data(), O_CLOEXEC));
    if (file < 0) return cannot_write(name, errno);
    ::unlink(name.c_str());
    return file;
}

int write_all(int file, ByteView bytes) noexcept
{
    while (!bytes.empty()) {
        const ssize_t done = ::write(file, bytes.data(), bytes.size());
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return errno;
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    return 0;
}

bool is_standard_output(const fs::path& path) { return path == "-"; }

OutputFile::OutputFile(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
OutputFile::OutputFile(OutputFile&&) noexcept = default;
OutputFile& OutputFile::operator=(OutputFile&&) noexcept = default;
OutputFile::~OutputFile() = default;

Result<OutputFile> OutputFile::open(const fs::path& path, mode_t mode, PathOrigin named)
{
    const std::string name = is_standard_output(path) ? "standard output" : path.string();
    const bool is_followed = named == PathOrigin::by_user;
    struct stat there{};
    const bool is_there = is_standard_output(path) ? false
                          : is_followed            ? ::stat(path.c_str(), &there) == 0
                                                   : ::lstat(path.c_str(), &there) == 0;
    if (is_there && !is_followed && (!S_ISREG(there.st_mode) || there.st_uid != ::geteuid()))
        return fail(ErrorCode::invalid_argument,
                    "cannot write '{}': a {} is there already, and it is not overwritten unless you name it", name,
                    S_ISREG(there.st_mode)   ? "file of another user"
                    : S_ISLNK(there.st_mode) ? "link"
                                             : "folder, device or pipe");
    if (is_there && (S_ISDIR(there.st_mode) || S_ISSOCK(there.st_mode)))
        return fail(ErrorCode::invalid_argument, "cannot write '{}': it is a {}, expected a file", name,
                    S_ISDIR(there.st_mode) ? "folder" : "socket");
    if (is_standard_output(path) || (is_there && !S_ISREG(there.st_mode))) {
        const auto file = open_unnamed_file();
        if (!file) return std::unexpected(file.error());
        auto impl = std::make_unique<Impl>(name, path, fs::path{});
        impl->file = *file;
        return OutputFile(std::move(impl));
    }
    const auto target = is_followed ? behind_links(path) : Result<fs::path>(path);
    if (!target) return std::unexpected(target.error());
    const fs::path folder = target->has_parent_path() ? target->parent_path() : ".";
    auto impl = std::make_unique<Impl>(name, *target, folder / fmt::format(".{}.tmp", random_uuid()));
    impl->file = above_standard_streams(
        ::open(impl->temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
    if (impl->file < 0) {
        const int error = errno;
        impl->temporary.clear();
        return cannot_write(name, error);
    }
    if (is_there) {
        if (mode == k_usual) static_cast<void>(::fchmod(impl->file, there.st_mode & 0777U));
        // When root replaces a user's file, the new file belongs to that user. For other users fchown fails.
        static_cast<void>(::fchown(impl->file, there.st_uid, there.st_gid) == 0);
    }
    return OutputFile(std::move(impl));
}

Result<void> OutputFile::write_at(std::uint64_t offset, ByteView bytes)
{
    while (!bytes.empty()) {
        const ssize_t done = ::pwrite(m_impl->file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
        if (done < 0 && errno == EINTR) continue;
        if (done < 0) return cannot_write(m_impl->name, errno);
        offset += static_cast<std::uint64_t>(done);
        bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
    m_impl->size = std::max(m_impl->size, offset);
    return {};
}

Result<void> OutputFile::append(ByteView bytes) { return write_at(m_impl->size, bytes); }

Result<void> OutputFile::commit()
{
    if (m_impl->temporary.empty()) {
        const int target = is_standard_output(m_impl->target)
                               ? ::fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0)
                               : ::open(m_impl->target.c_str(), O_WRONLY | O_CLOEXEC | O_NOCTTY);
        if (target < 0) return cannot_write(m_impl->name, errno);
        auto done = copy(m_impl->file, target, m_impl->name);
        if (::close(target) != 0 && done) return cannot_write(m_impl->name, errno);
        return done;
    }
    if (::fsync(m_impl->file) != 0) return cannot_write(m_impl->name, errno);
    if (::close(std::exchange(m_impl->file, -1)) != 0) return cannot_write(m_impl->name, errno);
    if (::rename(m_impl->temporary.c_str(), m_impl->target.c_str()) != 0) return cannot_write(m_impl->name, errno);
    m_impl->temporary.clear();
    return {};
}

} // namespace warmgraph
