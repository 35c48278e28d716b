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
    Digest payload_digest; ///< of the stored bytes
    Digest header_digest;  ///< seal()
    Digest key_digest;     ///< key_digest()
    Signature signature;   ///< signature.hpp

    [[nodiscard]] std::uint64_t header_end() const noexcept { return k_envelope_bytes + header_size; }
    [[nodiscard]] std::uint64_t file_size() const noexcept { return header_end() + payload_stored; }
};

using EnvelopeBytes = std::array<std::byte, k_envelope_bytes>;

/// With the seals of the first bytes and of the signature.
[[nodiscard]] EnvelopeBytes to_bytes(const Envelope& envelope);

/// Checks magic, the first bytes' seal, version, enum values, reserved bytes, every size against its cap, and the
/// form of the signature with its seal. The other digests are not looked at.
[[nodiscard]] Result<Envelope> parse_envelope(ByteView prefix, const Limits& limits);

/// How many bytes a payload takes in the file at least: what expands more would take memory out of proportion to its
/// file.
[[nodiscard]] std::uint64_t least_stored(std::uint64_t raw) noexcept;

/// SHA-256 over the key's fields with their lengths.
[[nodiscard]] Digest key_digest(const EntryKey& key);

/// The header digest: over the envelope before the signature with that field zeroed (so over the payload digest and
/// the key digest too) and the header's bytes.
[[nodiscard]] Digest seal(const Envelope& envelope, ByteView header);

} // namespace warmgraph::cachefmt
