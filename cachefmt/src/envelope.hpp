// The fixed part at the start of every entry file. Layout and digests: docs/format.md, "Envelope".
#pragma once

#include <array>
#include <cstdint>

#include "warmgraph/cachefmt/codec.hpp"

namespace warmgraph::cachefmt {

enum class Compression : std::uint32_t { none = 0, zstd = 1 };

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

    [[nodiscard]] std::uint64_t header_end() const noexcept { return k_envelope_bytes + header_size; }
    [[nodiscard]] std::uint64_t file_size() const noexcept { return header_end() + payload_stored; }
};

using EnvelopeBytes = std::array<std::byte, k_envelope_bytes>;

[[nodiscard]] EnvelopeBytes to_bytes(const Envelope& envelope);

/// Checks magic, version, enum values, reserved bytes and every size against its cap; no digest.
[[nodiscard]] Result<Envelope> parse_envelope(ByteView prefix, const Limits& limits);

/// SHA-256 over the key's fields with their lengths.
[[nodiscard]] Digest key_digest(const EntryKey& key);

/// The header digest: over the envelope with that field zeroed (so over the payload digest and the key digest too)
/// and the header's bytes.
[[nodiscard]] Digest seal(const Envelope& envelope, ByteView header);

} // namespace warmgraph::cachefmt
