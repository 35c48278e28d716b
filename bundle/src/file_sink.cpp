// A bundle's file is made beside its place and moved there when it is whole: somebody who opens it meanwhile sees the old
// one or the new one.
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/process.hpp"
#include "warmgraph/bundle/writer.hpp"

namespace warmgraph::bundle {
namespace {

class FileSink final : public Sink {
public:
    FileSink(int file, std::filesystem::path temporary, std::filesystem::path path)
        : m_file(file), m_temporary(std::move(temporary)), m_path(std::move(path))
    {
    }
    FileSink(const FileSink&) = delete;
    FileSink& operator=(const FileSink&) = delete;
    ~FileSink() override
    {
        if (m_file >= 0) ::close(m_file);
        if (!m_is_done) ::unlink(m_temporary.c_str());
    }
    [[nodiscard]] Result<void> append(ByteView bytes) override
    {
        if (auto ok = write_at(m_size, bytes); !ok) return ok;
        m_size += bytes.size();
        return {};
    }
    [[nodiscard]] Result<void> finish(ByteView first) override
    {
        if (auto ok = write_at(0, first); !ok) return ok;
        if (::fsync(m_file) != 0) return failed_to("sync");
        const int file = std::exchange(m_file, -1);
        if (::close(file) != 0) return failed_to("close");
        if (::rename(m_temporary.c_str(), m_path.c_str()) != 0) return failed_to("name");
        m_is_done = true;
        return {};
    }

private:
    [[nodiscard]] std::unexpected<Error> failed_to(std::string_view doing) const
    {
        const int error = errno;
        return fail(error == ENOSPC || error == EDQUOT ? ErrorCode::no_space : ErrorCode::io_failed,
                    "cannot {} bundle {}: {}", doing, m_path.string(), std::strerror(error));
    }
    [[nodiscard]] Result<void> write_at(std::uint64_t offset, ByteView bytes) const
    {
        while (!bytes.empty()) {
            const ssize_t done = ::pwrite(m_file, bytes.data(), bytes.size(), static_cast<off_t>(offset));
            if (done < 0 && errno == EINTR) continue;
            if (done < 0) return failed_to("write");
            offset += static_cast<std::uint64_t>(done);
            bytes = bytes.subspan(static_cast<std::size_t>(done));
        }
        return {};
    }

    int m_file;
    std::filesystem::path m_temporary, m_path;
    std::uint64_t m_size = 0;
    bool m_is_done = false;
};

} // namespace

Result<std::unique_ptr<Sink>> into_file(const std::filesystem::path& path)
{
    constexpr mode_t k_own = 0600;
    const std::filesystem::path folder = path.has_parent_path() ? path.parent_path() : ".";
    const std::filesystem::path temporary = folder / fmt::format(".{}.{}.tmp", path.filename().string(), random_uuid());
    const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, k_own);
    if (file < 0)
        return fail(errno == EACCES || errno == EROFS ? ErrorCode::permission_denied : ErrorCode::io_failed,
                    "cannot make bundle {}: {}", path.string(), std::strerror(errno));
    return std::make_unique<FileSink>(file, temporary, path);
}

} // namespace warmgraph::bundle
