#include "warmgraph/bundle/source.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/process.hpp"

namespace warmgraph::bundle {
namespace {

class FileSource final : public Source {
public:
    FileSource(int file, std::uint64_t size) : m_file(file), m_size(size) {}
    ~FileSource() override { ::close(m_file); }
    FileSource(const FileSource&) = delete;
    FileSource& operator=(const FileSource&) = delete;

    [[nodiscard]] std::uint64_t size() const noexcept override { return m_size; }
    [[nodiscard]] Result<void> read(std::uint64_t offset, std::span<std::byte> into) const override
    {
        while (!into.empty()) {
            const ssize_t got = ::pread(m_file, into.data(), into.size(), static_cast<off_t>(offset));
            if (got < 0 && errno == EINTR) continue;
            if (got < 0) return fail(ErrorCode::io_failed, "cannot read the bundle: {}", std::strerror(errno));
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

/// Whoever may write the file decides what a replay runs.
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
                    "bundle {} may be written by others (mode {:04o}), whose code would run as you: delete it; or, if "
                    "you trust what is in it, `chmod go-w {}`",
                    path.string(), status.st_mode & 07777U, path.string());
    return {};
}

} // namespace

Result<std::unique_ptr<Source>> open_file(const std::filesystem::path& path, Ownership ownership,
                                          const std::vector<std::uint32_t>& owners)
{
    // A pipe does not hold the process up.
    const int file = above_standard_streams(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    if (file < 0)
        return fail(errno == ENOENT   ? ErrorCode::not_found
                    : errno == EACCES ? ErrorCode::permission_denied
                                      : ErrorCode::io_failed,
                    "cannot open bundle {}: {}", path.string(), std::strerror(errno));
    struct stat status{};
    const bool is_known = ::fstat(file, &status) == 0;
    auto source = std::make_unique<FileSource>(file, is_known ? static_cast<std::uint64_t>(status.st_size) : 0);
    if (!is_known || !S_ISREG(status.st_mode))
        return fail(ErrorCode::io_failed, "bundle {} is no regular file", path.string());
    if (ownership == Ownership::trusted)
        if (auto ok = check_ownership(path, status, owners); !ok) return std::unexpected(std::move(ok.error()));
    return source;
}

std::unique_ptr<Source> over_bytes(ByteView bytes) { return std::make_unique<MemorySource>(bytes); }

} // namespace warmgraph::bundle
