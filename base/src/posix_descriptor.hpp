// Files by descriptor: opening, writing and looking at them relative to an open folder.
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

/// errno as an Error: "cannot read /x: No such file or directory".
[[nodiscard]] std::unexpected<Error> failed(std::string_view doing, const Path& path, int error);

/// One file descriptor, closed once; never one of a standard stream.
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

/// Follows no link at the end of `name`. errno says why it failed.
[[nodiscard]] Descriptor open_at(int folder, const std::string& name, int flags, mode_t mode = 0);

/// A folder, opened to be gone through, listed and synced; no link. errno says why it failed.
[[nodiscard]] Descriptor open_folder_at(int folder, const std::string& name);

[[nodiscard]] FileInfo info_of(const struct stat& status);

/// Makes names in a folder survive a power cut. Some file systems cannot sync a folder and say EINVAL.
[[nodiscard]] Result<void> sync_folder(int folder, const Path& path);

/// Beyond the process's limit on a file's size (RLIMIT_FSIZE) it fails: the signal SIGXFSZ, which would end the process,
/// does not get through.
[[nodiscard]] Result<void> write_all(int file, const Path& path, ByteView bytes);

/// Makes one folder; it has exactly this mode, whatever the umask, and is synced into its parent. It is touched only by
/// descriptor, and only where it is this user's own: what somebody swapped in meanwhile is permission_denied and stays
/// as it is. A folder that is there already keeps its mode.
[[nodiscard]] Result<void> make_folder_at(int parent, const std::string& name, std::uint32_t mode, const Path& path);

/// Sets the mode of an open file or folder where it is another: a share whose modes the mount decides refuses to set any.
[[nodiscard]] Result<void> set_mode(int file, std::uint32_t mode, const Path& path);

/// Whether the group may do anything with a file of this mode.
[[nodiscard]] constexpr bool is_for_group(std::uint32_t mode) noexcept { return (mode & 0070) != 0; }

/// Gives a new file or folder that its group may use the group of its folder.
[[nodiscard]] Result<void> take_group_of(int folder, int file, std::uint32_t mode, const Path& path);

} // namespace warmgraph::posix
