// File operations through descriptors, relative to an open folder.
#pragma once

#include <cerrno>
#include <string>
#include <utility>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/base/process.hpp"

namespace warmgraph::posix {

using Path = FileSystem::Path;

/// Makes an error from errno: "cannot read /x: No such file or directory".
[[nodiscard]] std::unexpected<Error> failed(std::string_view doing, const Path& path, int error);

/// A file descriptor that is closed exactly once. It is never 0, 1 or 2.
class Descriptor {
public:
    explicit Descriptor(int number) noexcept : m_number(above_standard_streams(number)) {}
    Descriptor(Descriptor&& other) noexcept : m_number(std::exchange(other.m_number, -1)) {}
    Descriptor& operator=(Descriptor&&) = delete;
    ~Descriptor()
    {
        if (m_number >= 0) ::close(m_number);
    }
    [[nodiscard]] explicit operator bool() const noexcept { return m_number >= 0; }
    [[nodiscard]] int number() const noexcept { return m_number; }
    /// Check the result: on network file systems close() reports a late write failure.
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

/// Opens `name` without following a link at its end. On failure errno is set.
[[nodiscard]] Descriptor open_at(int folder, const std::string& name, int flags, mode_t mode = 0);

/// Opens a folder for lookups, listing and syncing, but not through a link. On failure errno is set.
[[nodiscard]] Descriptor open_folder_at(int folder, const std::string& name);

[[nodiscard]] FileInfo info_of(const struct stat& status);

/// Makes new names in a folder survive a power cut. EINVAL is ignored: some file systems cannot sync a folder.
[[nodiscard]] Result<void> sync_folder(int folder, const Path& path);

/// Writes all bytes. Returns an error beyond the process's limit on file size (RLIMIT_FSIZE): the signal SIGXFSZ, which
/// would end the process, is blocked.
[[nodiscard]] Result<void> write_all(int file, const Path& path, ByteView bytes);

/// Makes one folder with exactly this mode, whatever the umask, and syncs its parent. Changes the folder only through
/// its descriptor and only if this user owns it: a folder that another user put in its place gives permission_denied
/// and is not touched. An existing folder keeps its mode.
[[nodiscard]] Result<void> make_folder_at(int parent, const std::string& name, std::uint32_t mode, const Path& path);

/// Sets the mode of an open file or folder if it differs: a share whose mount fixes the modes refuses every call.
[[nodiscard]] Result<void> set_mode(int file, std::uint32_t mode, const Path& path);

/// True if the mode gives the group any permission.
[[nodiscard]] constexpr bool is_for_group(std::uint32_t mode) noexcept { return (mode & 0070) != 0; }

/// Sets the group of a new file or folder to that of its folder, if the mode gives the group access.
[[nodiscard]] Result<void> take_group_of(int folder, int file, std::uint32_t mode, const Path& path);

} // namespace warmgraph::posix
