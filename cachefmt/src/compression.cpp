#include "compression.hpp"

#include <zstd.h>

namespace warmgraph::cachefmt {

Result<Bytes> compress(ByteView bytes, int level)
{
    Bytes out(ZSTD_compressBound(bytes.size()));
    const std::size_t written = ZSTD_compress(out.data(), out.size(), bytes.data(), bytes.size(), level);
    if (ZSTD_isError(written) != 0)
        return fail(ErrorCode::internal, "zstd cannot compress {} bytes: {}", bytes.size(), ZSTD_getErrorName(written));
    out.resize(written);
    return out;
}

Result<RawBytes> decompress(ByteView bytes, std::uint64_t raw_size)
{
    const unsigned long long stated = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
    if (stated == ZSTD_CONTENTSIZE_ERROR) return fail(ErrorCode::corrupt, "compressed payload is no zstd frame");
    if (stated == ZSTD_CONTENTSIZE_UNKNOWN)
        return fail(ErrorCode::corrupt, "zstd frame does not state its content size, expected {}", raw_size);
    if (stated != raw_size)
        return fail(ErrorCode::corrupt, "zstd frame holds {} bytes, the envelope says {}", stated, raw_size);
    if (const std::size_t frame = ZSTD_findFrameCompressedSize(bytes.data(), bytes.size());
        ZSTD_isError(frame) != 0 || frame != bytes.size())
        return fail(ErrorCode::corrupt, "compressed payload of {} bytes is not exactly one zstd frame", bytes.size());

    RawBytes out{std::make_unique_for_overwrite<std::byte[]>(raw_size), raw_size};
    const std::size_t written = ZSTD_decompress(out.data.get(), out.size, bytes.data(), bytes.size());
    if (ZSTD_isError(written) != 0)
        return fail(ErrorCode::corrupt, "zstd cannot decompress the payload: {}", ZSTD_getErrorName(written));
    if (written != raw_size)
        return fail(ErrorCode::corrupt, "payload decompressed to {} bytes, expected {}", written, raw_size);
    return out;
}

} // namespace warmgraph::cachefmt
