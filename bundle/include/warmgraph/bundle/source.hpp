// The bytes of a bundle, read part by part from a file, or from memory. Tests damage bundles at this interface.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::bundle {

/// Thread-safe.
class Source {
public:
    Source() = default;
    Source(const Source&) = delete;
    Source& operator=(const Source&) = delete;
    virtual ~Source() = default;
    [[nodiscard]] virtual std::uint64_t size() const noexcept = 0;
    /// Fills `into` from this offset on. `corrupt`: the source ends before; io_failed: the bytes cannot be read.
    [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

/// The users that may have written the file.
enum class Ownership : std::uint8_t {
    trusted, ///< it belongs to this user, to root or to one of `owners`, and no other user may write it
    anybody, ///< any user: the contents are only displayed, or need an accepted signature
};

/// How to treat a path that is not a regular file: a pipe, a socket, or "-" for standard input.
enum class Streams : std::uint8_t {
    refused, ///< refused: a service must not wait for the writer of a pipe
    spooled, ///< copied into a file without a name, up to the size in the bundle's header
};

/// Reads with pread and not by mapping: if another process truncates a mapped file, a read kills this process. A link
/// is followed, because the user named the path. Errors: not_found, io_failed (not a regular file), permission_denied
/// with the cure. For a stream also: `corrupt` (not a bundle's header), invalid_argument (a terminal), no_space.
[[nodiscard]] Result<std::unique_ptr<Source>> open_file(const std::filesystem::path& path,
                                                        Ownership ownership = Ownership::anybody,
                                                        const std::vector<std::uint32_t>& owners = {},
                                                        Streams streams = Streams::refused);
/// A file opened as Ownership::anybody, with the check of Ownership::trusted. A stream can be opened only once.
struct OpenedFile {
    std::unique_ptr<Source> source;
    Result<void> trusted; ///< the result of the check for Ownership::trusted
};
[[nodiscard]] Result<OpenedFile> open_judged(const std::filesystem::path& path,
                                             const std::vector<std::uint32_t>& owners, Streams streams);
/// `bytes` must outlive it.
[[nodiscard]] std::unique_ptr<Source> over_bytes(ByteView bytes);

} // namespace warmgraph::bundle
