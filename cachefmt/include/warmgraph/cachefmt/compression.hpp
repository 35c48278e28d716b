// zstd, bounded: the output size is known and checked before anything is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::cachefmt {

/// Uninitialised bytes: a false size in a file costs address space, but no time for zeroing.
struct RawBytes {
    std::unique_ptr<std::byte[]> data;
    std::size_t size = 0;
    [[nodiscard]] ByteView view() const noexcept { return {data.get(), size}; }
};

/// Returns one frame with its content size and no checksum (the payload digest covers it). If the frame has fewer than
/// `least` bytes, a skippable frame (zstd's form for bytes that are not data) pads it.
[[nodiscard]] Result<Bytes> compress(ByteView bytes, int level, std::uint64_t least);

/// REQUIRES: `raw_size` is within its cap. `bytes` must be exactly one frame that states `raw_size` as its content
/// size, and at most one skippable frame.
[[nodiscard]] Result<RawBytes> decompress(ByteView bytes, std::uint64_t raw_size);

/// Returns the content size that the first frame states; nullopt if there is no frame or the frame states no size.
[[nodiscard]] std::optional<std::uint64_t> frame_content_size(ByteView bytes) noexcept;

} // namespace warmgraph::cachefmt
