#include "warmgraph/cachefmt/compression.hpp"

#include <algorithm>

#include <zstd.h>

namespace warmgraph::cachefmt {
namespace {

// RFC 8878, 3.1.2: one of sixteen magic numbers, followed by the size of the rest.
constexpr std::uint32_t k_skippable_magic = 0x184D2A50;
constexpr std::size_t k_skippable_head = 8;

void pad(Bytes& frame, std::uint64_t least)
{
    if (frame.size() >= least) return;
    const auto size =
        static_cast<std::uint32_t>(least - std::min<std::uint64_t>(least, frame.size() + k_skippable_head));
    append(frame, k_skippable_magic);
    append(frame, size);
    frame.resize(frame.size() + size);
}

bool is_padding(ByteView bytes)
{
    return bytes.empty() || (bytes.size() >= k_skippable_head && load<std::uint32_t>(bytes) == k_skippable_magic &&
                             load<std::uint32_t>(bytes, sizeof(std::uint32_t)) == bytes.size() - k_skippable_head);
}

} // namespace

Result<Bytes> compress(ByteView bytes, int level, std::uint64_t least)
{
    Bytes out(ZSTD_compressBound(bytes.size()));
    const std::size_t written = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
    if (ZSTD_isError(written) != 0)
        return fail(ErrorCode::internal, "zstd cannot compress {} bytes: {}", bytes.size(), ZSTD_getErrorName(written));
    out.resize(written);
    pad(out, least);
    return out;
}

Result<RawBytes> decompress(ByteView bytes, std::uint64_t raw_size)
{
    const unsigned long long stated = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (stated == ZSTD_CONTENTSIZE_ERROR) return fail(ErrorCode::corrupt, "the compressed payload is not a zstd frame");
    if (stated == ZSTD_CONTENTSIZE_UNKNOWN)
        return fail(ErrorCode::corrupt, "zstd frame does not state its content size, expected {}", raw_size);
    if (stated != raw_size)
        return fail(ErrorCode::corrupt, "zstd frame holds {} bytes, the envelope says {}", stated, raw_size);
    const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
    if (ZSTD_isError(frame) != 0 || !is_padding(bytes.subspan(frame)))
        return fail(ErrorCode::corrupt, "compressed payload of {} bytes is not exactly one zstd frame", bytes.size());

    RawBytes out{std::make_unique_for_overwrite<std::byte[]>(raw_size), raw_size};
    const std::size_t written = ZSTD_decompress(out.data.get(), out.size, bytes.data(), frame);
    if (ZSTD_isError(written) != 0)
        return fail(ErrorCode::corrupt, "zstd cannot decompress the payload: {}", ZSTD_getErrorName(written));
    if (written != raw_size)
        return fail(ErrorCode::corrupt, "payload decompressed to {} bytes, expected {}", written, raw_size);
    return out;
}

std::optional<std::uint64_t> frame_content_size(ByteView bytes) noexcept
{
    constexpr std::uint32_t k_magic = 0xFD2FB528; // begins a frame with contents; skippable frames begin differently
    if (bytes.size() < sizeof(k_magic) || load<std::uint32_t>(bytes) != k_magic) return std::nullopt;
    const unsigned long long stated = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (stated == ZSTD_CONTENTSIZE_ERROR || stated == ZSTD_CONTENTSIZE_UNKNOWN) return std::nullopt;
    return stated;
}

} // namespace warmgraph::cachefmt
