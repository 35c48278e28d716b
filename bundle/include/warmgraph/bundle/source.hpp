// Where a bundle's bytes are read from: a file, part by part, or memory. The seam at which tests damage them.
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
    /// Fills `into` from this offset on. `corrupt`: fewer bytes are there; io_failed: they cannot be read.
    [[nodiscard]] virtual Result<void> read(std::uint64_t offset, std::span<std::byte> into) const = 0;
};

/// Who may have written a file whose contents are to be used.
enum class Ownership : std::uint8_t {
    trusted, ///< it belongs to this user, to root or to one of `owners`, and nobody else may write it
    anybody, ///< anyone: what is in it is looked at, or must have an accepted signature
};

/// How the reader treats a path that is no regular file: a pipe, a socket, or "-", which then is standard input.
enum class Streams : std::uint8_t {
    refused, ///< a service must not wait for who writes into a pipe
    spooled, ///< read to its end into a file without a name, as far as the bundle's header says that it goes
};

/// Read with pread, never mapped: a mapped file that somebody truncates would kill the process. A link is followed: the
/// path is the user's word. not_found, io_failed (no regular file), permission_denied with the cure; of a stream `corrupt`:
/// it begins with no bundle's header, invalid_argument: it is a terminal, and no_space.
[[nodiscard]] Result<std::unique_ptr<Source>> open_file(const std::filesystem::path& path,
                                                        Ownership ownership = Ownership::anybody,
                                                        const std::vector<std::uint32_t>& owners = {},
                                                        Streams streams = Streams::refused);
/// The same, where both may do: a stream is opened once.
struct OpenedFile {
    std::unique_ptr<Source> source;
    Result<void> trusted; ///< what Ownership::trusted would have said
};
[[nodiscard]] Result<OpenedFile> open_judged(const std::filesystem::path& path,
                                             const std::vector<std::uint32_t>& owners, Streams streams);
/// `bytes` must outlive it.
[[nodiscard]] std::unique_ptr<Source> over_bytes(ByteView bytes);

} // namespace warmgraph::bundle
