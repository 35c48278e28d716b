// A file that a user names as a command's output.
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

/// What stands at a path after commit(): a regular file, or nothing, is replaced as a whole by a temporary beside it, synced
/// and renamed; of a link, the file that it means is. Into anything else (a device, a pipe, "-") the bytes are written, once
/// they are all known. Without commit() the path is as it was. Not thread-safe.
class OutputFile {
public:
    static constexpr mode_t k_private = 0600; ///< also where a file that others may read stood there
    static constexpr mode_t k_usual = 0666;   ///< less the umask; a file that stood there gives its own

    /// permission_denied, no_space, io_failed; invalid_argument: a folder, a socket, a link to nothing.
    [[nodiscard]] static Result<OutputFile> open(const std::filesystem::path& path, mode_t mode);
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
