// zstd, bounded: the output size is known and checked before anything is allocated.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph::cachefmt {

/// Bytes that are not zeroed first: a size that lies costs address space, not time.
struct RawBytes {
    std::unique_ptr<std::byte[]> data;
    std::size_t size = 0;
    [[nodiscard]] ByteView view() const noexcept { return {data.get(), size}; }
};

/// One frame with its content size, no checksum (the payload digest covers it). Where that has fewer than `least`
/// bytes a skippable frame follows (zstd's specification has them for what is no data) that makes up for it.
[[nodiscard]] Result<Bytes> compress(ByteView bytes, int level, std::uint64_t least);

/// REQUIRES: `raw_size` is within its cap. `bytes` must be exactly one frame that states `raw_size` as its content
/// size, and at most one skippable frame.
[[nodiscard]] Result<RawBytes> decompress(ByteView bytes, std::uint64_t raw_size);

/// What the first frame of these bytes says that it holds; nullopt where they begin with none, or it does not say.
[[nodiscard]] std::optional<std::uint64_t> frame_content_size(ByteView bytes) noexcept;

} // namespace warmgraph::cachefmt
