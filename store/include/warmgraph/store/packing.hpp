// Compression of objects before they are put into a tier. An entry's envelope says whether its payload is compressed
// (docs/format.md). An image's object is the image itself or one zstd frame with the image; its name, the SHA-256,
// shows which form it has.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::store {

/// How objects of one kind are stored.
struct Packing {
    int level = 0;                      ///< zstd's level, 1..19; 0: never compressed
    std::uint64_t above = 16ULL * 1024; ///< bytes; smaller objects are not compressed
    bool operator==(const Packing&) const = default;
};

/// Compression by kind. The defaults are measured: docs/measurements.md, "Store and bundles".
struct Packings {
    Packing payloads{.level = 3}; ///< the payloads of entries
    Packing images{};
    Packing constants{}; ///< contents of a graph's constants, stored beside the images
    bool operator==(const Packings&) const = default;
};

/// Parses "images=3" or "payloads=9@64K,images=3@4K,constants=0": level and threshold by kind. Kinds that are not named
/// keep their default. "" gives the defaults. The error invalid_argument says what is expected.
[[nodiscard]] Result<Packings> parse_packings(std::string_view what, std::string_view text);

/// Sets the packing of one kind: entries (their payloads), images or constants. Returns invalid_argument, whose message names
/// `what`, for another kind or an impossible level.
[[nodiscard]] Result<void> set_packing(Packings& packings, std::string_view what, ArtifactKind kind,
                                       const Packing& packing);

/// A frame that expands to more than this many times its own size is refused.
inline constexpr std::uint64_t k_most_packed = 64;

/// Returns the blob as one frame, or empty when it is stored uncompressed (it is small, or compression gains nothing).
[[nodiscard]] Result<Bytes> pack(ByteView blob, const Packing& packing);
/// Returns the blob in an object: the object itself when its SHA-256 is `digest`, else the contents of its frame.
/// `corrupt`: neither matches, the blob is larger than `most` bytes, or larger than k_most_packed times the object.
[[nodiscard]] Result<Bytes> unpack(Bytes object, const Digest& digest, std::uint64_t most);

} // namespace warmgraph::store
