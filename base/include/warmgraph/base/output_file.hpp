// A file that a user names as a command's output, and files without a name.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include <sys/types.h>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// "-", which means standard output.
[[nodiscard]] bool is_standard_output(const std::filesystem::path& path);

/// A file without a name, to read and write, in the folder for temporary files: it is gone when it is closed, which is the
/// caller's to do. permission_denied, no_space, io_failed.
[[nodiscard]] Result<int> open_unnamed_file();

/// Writes all bytes at the place of an open file; 0, or errno.
[[nodiscard]] int write_all(int file, ByteView bytes) noexcept;

/// What stands at a path after commit(): a regular file, or nothing, is replaced as a whole by a temporary beside it, synced
/// and renamed; of a link, the file that it means is. Into anything else (a device, a pipe, "-") the bytes are written, once
/// they are all known. Without commit() the path is as it was. Not thread-safe.
class OutputFile {
public:
    static constexpr mode_t k_private = 0600; ///< also where a file that others may read stood there
    static constexpr mode_t k_usual = 0666;   ///< less the umask; a file that stood there gives its own

    /// This says who chose the path. Others may plant a link at a name that the program chose: there the program follows no
    /// link, and replaces only a regular file of this user.
    enum class Named : std::uint8_t { by_user, by_program };

    /// permission_denied, no_space, io_failed; invalid_argument: a folder, a socket, a link to nothing; by_program: anything but a
    /// regular file of this user's.
    [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path, mode_t mode,
                                                 Named named = Named::by_user);
    OutputFile(OutputFile&&) noexcept;
    OutputFile& operator=(OutputFile&&) noexcept;
    ~OutputFile();

    /// Errors as open()'s.
    [[nodiscard]] Result<void> write_at(std::uint64_t offset, ByteView bytes);
    [[nodiscard]] Result<void> append(ByteView bytes);
    /// Use once; nothing is written behind it.
    [[nodiscard]] Result<void> commit();

private:
    struct Impl;
    explicit OutputFile(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
