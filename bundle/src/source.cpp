#include "warmgraph/bundle/source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include "format.hpp"
#include "warmgraph/base/output_file.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::bundle {
namespace {

Error cannot_read() { return {ErrorCode::io_failed, fmt::format("cannot read the bundle: {}", std::strerror(errno))}; }

class FileSource final : public Source {
public:
    FileSource(int file, std::uint64_t size) : m_file(file), m_size(size) {}
    ~FileSource() override { ::close(m_file); }
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    /// Adds bytes to the size. Call this before the first read.
    void grow(std::uint64_t bytes) noexcept { m_size += bytes; }
    [[nodiscard]] std::uint64_t size() const noexcept override { return m_size; }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override
    {
        while (!into.empty()) {
            const ssize_t got = ::pread(m_file, into.data(), into.size(), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return std::unexpected(cannot_read());
            if (got == 0)
                return fail(ErrorCode::corrupt, "the bundle ends at byte {}, {} more were expected", offset,
                            into.size());
            offset += static_cast<std::uint64_t>(got);
            into = into.subspan(static_cast<std::size_t>(got));
        }
        return {};
    }

private:
    int m_file;
    std::uint64_t m_size;
};

class MemorySource final : public Source {
public:
    explicit MemorySource(ByteView bytes) : m_bytes(bytes) {}
    [[nodiscard]] std::uint64_t size() const noexcept override { return m_bytes.size(); }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override
    {
        if (offset > m_bytes.size() || into.size() > m_bytes.size() - offset)
            return fail(ErrorCode::corrupt, "the bundle ends at byte {}, bytes {} to {} were expected", m_bytes.size(),
                        offset, offset + into.size());
        std::ranges::copy(m_bytes.subspan(offset, into.size()), into.begin());
        return {};
    }

private:
    ByteView m_bytes;
};

/// Checks who may write the file, because the contents decide what a replay runs.
Result<void> check_ownership(const std::filesystem::path& path, const struct stat& status,
                             const std::vector<std::uint32_t>& owners)
{
    constexpr mode_t k_others_write = 022;
    const bool is_known =
        status.st_uid == ::geteuid() || status.st_uid == 0 || std::ranges::find(owners, status.st_uid) != owners.end();
    if (!is_known)
        return fail(ErrorCode::permission_denied,
                    "bundle {} belongs to user {}, expected {}: name user {} as trusted (trusted_owners, "
                    "WARMGRAPH_TRUSTED_OWNERS), or accept a key that signed it",
                    path.string(), status.st_uid, ::geteuid(), status.st_uid);
    if ((status.st_mode & k_others_write) != 0)
        return fail(ErrorCode::permission_denied,
                    "bundle {} can be written by other users (mode {:04o}), whose code would run as you: delete it; "
                    "or, if you trust its contents, `chmod go-w {}`",
                    path.string(), status.st_mode & 07777U, path.string());
    return {};
}

/// Waits until the stream has bytes or ends. Without this, a pipe that was opened before its writer seems to be at its
/// end.
Result<void> wait_for(int stream)
{
    struct pollfd ready{stream, POLLIN, 0};
    while (::poll(&ready, 1, -1) < 0)
        if (errno != EINTR) return std::unexpected(cannot_read());
    return {};
}

/// Reads from a stream until `into` is full or the stream ends. Returns the number of bytes.
Result<std::size_t> read_some(int stream, std::span<std::byte> into)
{
    std::size_t done = 0;
    while (done < into.size()) {
        const ssize_t got = ::read(stream, into.data() + done, into.size() - done);
        if (got == 0) break;
        if (got > 0) {
            done += static_cast<std::size_t>(got);
        } else if (errno == EAGAIN) {
            if (auto ok = wait_for(stream); !ok) return std::unexpected(std::move(ok.error()));
        } else if (errno != EINTR) {
            return std::unexpected(cannot_read());
        }
    }
    return done;
}

/// Copies a stream into a file without a name. Copies at most one byte more than the size in the header, so that a
/// longer bundle is refused because of its size.
Result<std::unique_ptr<Source>> spooled(int stream)
{
    const auto file = open_unnamed_file();
    if (!file) return std::unexpected(file.error());
    auto spool = std::make_unique<FileSource>(*file, 0);
    if (auto ready = wait_for(stream); !ready) return std::unexpected(std::move(ready.error()));
    Bytes part(std::size_t{1} << 20);
    auto got = read_some(stream, std::span(part).first(k_header_bytes));
    if (!got) return std::unexpected(std::move(got.error()));
    const auto header = parse_header(ByteView(part).first(*got), std::nullopt);
    if (!header) return std::unexpected(header.error());
    for (std::uint64_t left = header->file_size() + 1; *got > 0;) {
        if (const int error = write_all(*file, ByteView(part).first(*got)))
            return fail(error == ENOSPC || error == EDQUOT ? ErrorCode::no_space : ErrorCode::io_failed,
                        "cannot store the bundle in the folder for temporary files: {}; set TMPDIR to a folder with "
                        "enough space, or give a file",
                        std::strerror(error));
        spool->grow(*got);
        left -= *got;
        got = read_some(stream, std::span(part).first(std::min<std::uint64_t>(left, part.size())));
        if (!got) return std::unexpected(std::move(got.error()));
    }
    return spool;
}

} // namespace

Result<OpenedFile> open_judged(const std::filesystem::path& path, const std::vector<std::uint32_t>& owners,
                               Streams streams)
{
    const bool is_input = streams == Streams::spooled && path == "-";
    // O_NONBLOCK: opening a pipe must not block the process.
    const int file = is_input
                         ? ::fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1)
                         : above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
    if (file < 0)
        return fail(errno == ENOENT   ? ErrorCode::not_found
                    : errno == EACCES ? ErrorCode::permission_denied
                                      : ErrorCode::io_failed,
                    "cannot open bundle {}: {}", path.string(), std::strerror(errno));
    struct stat status{};
    const bool is_known = ::fstat(file, &status) == 0;
    auto source = std::make_unique<FileSource>(file, is_known ? static_cast<std::uint64_t>(status.st_size) : 0);
    auto trusted = check_ownership(path, status, owners);
    if (is_known && S_ISREG(status.st_mode)) return OpenedFile{std::move(source), std::move(trusted)};
    if (!is_known || streams == Streams::refused || S_ISDIR(status.st_mode) || S_ISBLK(status.st_mode))
        return fail(ErrorCode::io_failed, "bundle {} is not a regular file", path.string());
    if (::isatty(file) == 1)
        return fail(ErrorCode::invalid_argument,
                    "bundle {} is a terminal: give a file, or pipe a bundle to standard input", path.string());
    auto spool = spooled(file);
    if (!spool) return std::unexpected(std::move(spool.error()));
    return OpenedFile{std::move(*spool), std::move(trusted)};
}

Result<std::unique_ptr<Source>> open_file(const std::filesystem::path& path, Ownership ownership,
                                          const std::vector<std::uint32_t>& owners, Streams streams)
{
    auto opened = open_judged(path, owners, streams);
    if (!opened) return std::unexpected(std::move(opened.error()));
    if (ownership == Ownership::trusted && !opened->trusted) return std::unexpected(std::move(opened->trusted.error()));
    return std::move(opened->source);
}

std::unique_ptr<Source> over_bytes(ByteView bytes) { return std::make_unique<MemorySource>(bytes); }

} // namespace warmgraph::bundle
