// The bytes of a bundle, read part by part from a file or from memory. Tests use this interface to damage bundles.
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
    /// Fills `into` from this offset on. `corrupt`: the source ends too early; io_failed: the bytes cannot be read.
    [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

/// The users that may have written the file.
enum class Ownership : std::uint8_t {
    trusted, ///< the file belongs to this user, to root or to one of `owners`, and no other user may write it
    anybody, ///< any user may have written it: the contents are only displayed, or need an accepted signature
};

/// How to treat a path that is not a regular file: a pipe, a socket, or "-" for standard input.
enum class Streams : std::uint8_t {
    refused, ///< such a path is refused: a service must not wait for the writer of a pipe
    spooled, ///< the stream is copied into a file without a name, up to the size in the bundle's header
};

/// Opens a file. Reads it with pread and does not map it: if another process truncates a mapped file, a read kills this
/// process. Follows a link, because the user named the path. Errors: not_found, io_failed (not a regular file),
/// permission_denied with the cure. For a stream also: `corrupt` (not a bundle's header), invalid_argument (a
/// terminal), no_space.
[[nodiscard]] Result<std::unique_ptr<Source>> open_file(const std::filesystem::path& path,
                                                        Ownership ownership = Ownership::anybody,
                                                        const std::vector<std::uint32_t>& owners = {},
                                                        Streams streams = Streams::refused);
/// A file that was opened as Ownership::anybody, and the result of the check for Ownership::trusted. Both come from one
/// opening, because a stream can be opened only once.
struct OpenedFile {
    std::unique_ptr<Source> source;
    Result<void> trusted; ///< the result of the check for Ownership::trusted
};
[[nodiscard]] Result<OpenedFile> open_judged(const std::filesystem::path& path,
                                             const std::vector<std::uint32_t>& owners, Streams streams);
/// Returns a source that reads `bytes`, which must outlive it.
[[nodiscard]] std::unique_ptr<Source> over_bytes(ByteView bytes);

} // namespace warmgraph::bundle
