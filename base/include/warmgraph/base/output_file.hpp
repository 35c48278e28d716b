// An output file of a command, at a path from the user, and temporary files without a name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <sys/types.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// True for "-".
[[nodiscard]] bool is_standard_output(const std::filesystem::path& path);

/// Opens a temporary file without a name for reading and writing. It disappears when the caller closes it. Errors:
/// permission_denied, no_space, io_failed.
[[nodiscard]] Result<int> open_unnamed_file();

/// Writes all bytes at the file's current position. Returns 0 or errno.
[[nodiscard]] int write_all(int file, ByteView bytes) noexcept;

/// Replaces the content of a path as a whole, at commit(). A regular or missing file is written as a temporary file
/// beside it, synced, and renamed over it; through a link, the link's target is replaced. For anything else (a device,
/// a pipe, "-") the bytes are copied into it at commit(). Without commit() the path does not change. Not thread-safe.
class OutputFile {
public:
    static constexpr mode_t k_private = 0600; ///< for this user only, even if others could read the replaced file
    static constexpr mode_t k_usual = 0666;   ///< reduced by the umask; a file that is replaced keeps its own mode

    /// Says who chose the path. Another user may plant a link at a path that the program chose: there, the program
    /// follows no link and replaces only a regular file of this user.
    enum class PathOrigin : std::uint8_t { by_user, by_program };

    /// Errors: permission_denied, no_space, io_failed; invalid_argument for a folder, a socket or a dangling link, and
    /// with by_program for anything but a regular file of this user.
    [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path, mode_t mode,
                                                 PathOrigin named = PathOrigin::by_user);
    OutputFile(OutputFile&&) noexcept;
    OutputFile& operator=(OutputFile&&) noexcept;
    ~OutputFile();

    /// Errors as for open().
    [[nodiscard]] Result<void> write_at(std::uint64_t offset, ByteView bytes);
    [[nodiscard]] Result<void> append(ByteView bytes);
    /// Call this once, after the last write.
    [[nodiscard]] Result<void> commit();

private:
    struct Impl;
    explicit OutputFile(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
