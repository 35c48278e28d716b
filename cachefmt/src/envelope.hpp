// The fixed part at the start of every entry file. Layout and digests: docs/format.md, "Envelope".
#pragma once

#include <array>
#include <cstdint>

#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

enum class Compression : std::uint32_t { none = 0, zstd = 1 };

struct Signature {
    SignatureKind kind = SignatureKind::none;
    std::string key_id{};
    SignatureBytes bytes{};
    bool operator==(const Signature&) const = default;
};

struct Envelope {
    std::uint32_t version = k_format_version;
    EntryKind kind = EntryKind::graph;
    std::uint64_t header_size = 0;
    std::uint64_t payload_stored = 0; ///< bytes in the file
    std::uint64_t payload_raw = 0;    ///< bytes once decompressed
    Compression compression = Compression::none;
    Digest payload_digest; ///< over the stored bytes
    Digest header_digest;  ///< the result of seal()
    Digest key_digest;     ///< the result of key_digest()
    Signature signature;   ///< made by signature.hpp

    [[nodiscard]] std::uint64_t header_end() const noexcept { return k_envelope_bytes + header_size; }
    [[nodiscard]] std::uint64_t file_size() const noexcept { return header_end() + payload_stored; }
};

using EnvelopeBytes = std::array<std::byte, k_envelope_bytes>;

/// Adds the seals of the first bytes and of the signature.
[[nodiscard]] EnvelopeBytes to_bytes(const Envelope& envelope);

/// Checks magic, the first bytes' seal, version, enum values, reserved bytes, every size against its limit, and the
/// signature's form and seal. Does not check the other digests.
[[nodiscard]] Result<Envelope> parse_envelope(ByteView prefix, const Limits& limits);

/// The fewest bytes that a payload may take in the file. A smaller payload is refused, because it could expand to far
/// more memory than the file's size.
[[nodiscard]] std::uint64_t least_stored(std::uint64_t raw) noexcept;

/// SHA-256 over the key's fields with their lengths.
[[nodiscard]] Digest key_digest(const EntryKey& key);

/// The header digest: over the header's bytes and the envelope before the signature, with the field of this digest
/// zeroed. So it covers the digests of payload and key too.
[[nodiscard]] Digest seal(const Envelope& envelope, ByteView header);

} // namespace warmgraph::cachefmt
