// What is compressed on its way to a tier, and how an image is found again. Payloads of entries say in their envelope
// whether they are compressed (docs/format.md). An image's object is the image itself, or one zstd frame that holds it:
// its name, the SHA-256 of the raw bytes, tells which.
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
    int level = 0;                      ///< zstd's, 1..19; 0: never compressed
    std::uint64_t above = 16ULL * 1024; ///< bytes; smaller ones are stored as they are
    bool operator==(const Packing&) const = default;
};

/// By kind. The defaults are measured: docs/measurements.md, "Store and bundles".
struct Packings {
    Packing payloads{.level = 3}; ///< of entries
    Packing images{};
    Packing constants{}; ///< contents of a graph's constants, which lie beside the images
    bool operator==(const Packings&) const = default;
};

/// "images=3" or "payloads=9@64K,images=3@4K,constants=0": level and threshold by kind; a kind that is not named keeps its
/// default. "" is the defaults. invalid_argument says what is expected.
[[nodiscard]] Result<Packings> parse_packings(std::string_view what, std::string_view text);

/// Sets the packing of one kind: entries (their payloads), images or constants. invalid_argument for another kind or for a
/// level that there is not names `what`, where it stood.
[[nodiscard]] Result<void> set_packing(Packings& packings, std::string_view what, ArtifactKind kind,
                                       const Packing& packing);

/// No frame may hold more than so many times its own size.
inline constexpr std::uint64_t k_most_packed = 64;

/// The blob as it is to be stored: one frame, or empty where it stays as it is (it is small, or gains nothing).
[[nodiscard]] Result<Bytes> pack(ByteView blob, const Packing& packing);
/// The blob that such an object holds: the object itself where its SHA-256 is `digest`, else what its frame holds.
/// `corrupt`: neither, more than `most` bytes, or more than k_most_packed times the object's.
[[nodiscard]] Result<Bytes> unpack(Bytes object, const Digest& digest, std::uint64_t most);

} // namespace warmgraph::store
