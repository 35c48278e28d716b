#include "envelope.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

namespace warmgraph::cachefmt {
namespace {

using namespace std::string_view_literals;

// A byte above 127, a name, and a line end: text conversion or loss of the eighth bit changes these bytes (as in PNG).
constexpr std::string_view k_magic = "\x89WGENT\r\n"sv;
constexpr std::string_view k_key_domain = "warmgraph key 1"sv;
constexpr std::string_view k_entry_domain = "warmgraph entry 1"sv;
constexpr std::string_view k_first_bytes_domain = "warmgraph first bytes 1"sv;
constexpr std::string_view k_signature_block_domain = "warmgraph signature block 1"sv;

constexpr std::uint32_t k_first_sealed_format = 5; // older formats have no seal of the first bytes
constexpr std::uint64_t k_most_expansion = 64;     // raw bytes for each stored byte; measured graphs: 3 to 25

namespace at {
constexpr std::size_t magic = 0, version = 8, kind = 12, header_size = 16, payload_stored = 24, payload_raw = 32,
                      compression = 40, flags = 44, payload_digest = 48, header_digest = 80, key_digest = 112,
                      first_seal = 144, reserved = 176, signature_kind = 192, key_id = 196, signature = 256,
                      signature_seal = 320, end = 352;
} // namespace at
static_assert(at::end == k_envelope_bytes);
static_assert(at::signature - at::key_id == k_key_id_max);
static_assert(k_magic.size() == at::version);

// flatbuffers counts in 32 bits: 2 GiB at most, whatever the limits are.
constexpr std::uint64_t k_flatbuffer_max = std::numeric_limits<std::int32_t>::max() - 1;
constexpr std::uint64_t k_flatbuffer_min = 16; // root offset, identifier, and the smallest table

template <class T>
void store(EnvelopeBytes& bytes, std::size_t offset, const T& value)
{
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

Result<void> check_size(std::string_view what, std::uint64_t size, std::uint64_t cap)
{
    cap = std::min(cap, k_flatbuffer_max);
    if (size < k_flatbuffer_min)
        return fail(ErrorCode::corrupt, "{} of {} bytes is too small, expected at least {}", what, size,
                    k_flatbuffer_min);
    if (size > cap) return fail(ErrorCode::corrupt, "{} of {} bytes is over the limit of {}", what, size, cap);
    return {};
}

Result<void> check_payload_sizes(const Envelope& envelope, const Limits& limits)
{
    if (envelope.kind == EntryKind::tombstone) {
        if (envelope.payload_stored != 0 || envelope.payload_raw != 0 || envelope.compression != Compression::none)
            return fail(ErrorCode::corrupt, "a tombstone has no payload, this one claims {} bytes",
                        envelope.payload_stored);
        return {};
    }
    if (auto ok = check_size("payload", envelope.payload_raw, limits.payload_bytes); !ok) return ok;
    if (envelope.payload_stored == 0 || envelope.payload_stored > limits.payload_stored_bytes)
        return fail(ErrorCode::corrupt, "stored payload of {} bytes, expected 1 to {}", envelope.payload_stored,
                    limits.payload_stored_bytes);
    if (envelope.compression == Compression::none && envelope.payload_stored != envelope.payload_raw)
        return fail(ErrorCode::corrupt, "uncompressed payload is stored in {} bytes, expected {}",
                    envelope.payload_stored, envelope.payload_raw);
    if (envelope.payload_stored < least_stored(envelope.payload_raw))
        return fail(ErrorCode::corrupt, "stored payload of {} bytes expands to {}, over the limit of {} to 1",
                    envelope.payload_stored, envelope.payload_raw, k_most_expansion);
    return {};
}

/// Returns the seal that tells a newer format from damage. From format 5 on, magic, version, kind, sizes, compression,
/// flags and this seal keep their places.
Digest seal_of_first_bytes(ByteView prefix)
{
    Sha256 hash;
    hash.update_field(k_first_bytes_domain);
    hash.update(prefix.first(at::payload_digest));
    return hash.finish();
}

bool first_bytes_are_whole(ByteView prefix)
{
    return load<std::uint32_t>(prefix, at::version) < k_first_sealed_format ||
           load<Digest>(prefix, at::first_seal) == seal_of_first_bytes(prefix);
}

/// Includes the header digest, so that a signature of another entry does not fit.
Digest seal_of_signature(ByteView prefix)
{
    Sha256 hash;
    hash.update_field(k_signature_block_domain);
    hash.update(prefix.subspan(at::header_digest, sizeof(Digest)));
    hash.update(prefix.subspan(at::signature_kind, at::signature_seal - at::signature_kind));
    return hash.finish();
}

bool is_zero(ByteView bytes)
{
    return std::ranges::all_of(bytes, [](std::byte byte) { return byte == std::byte{0}; });
}

Result<Signature> parse_signature(ByteView prefix)
{
    if (load<Digest>(prefix, at::signature_seal) != seal_of_signature(prefix))
        return fail(ErrorCode::corrupt, "the signature's digest does not match: the entry is damaged");
    const auto kind = load<std::uint32_t>(prefix, at::signature_kind);
    if (kind > static_cast<std::uint32_t>(SignatureKind::ed25519))
        return fail(ErrorCode::corrupt, "signature kind {} is unknown", kind);
    const std::string_view field = as_text(prefix.subspan(at::key_id, k_key_id_max));
    Signature signature{static_cast<SignatureKind>(kind), std::string{field.substr(0, field.find('\0'))}, {}};
    signature.bytes = load<SignatureBytes>(prefix, at::signature);
    const bool is_signed = signature.kind != SignatureKind::none;
    const std::size_t used = is_signed ? signature.key_id.size() : 0;
    const auto signature_bytes = prefix.subspan(at::signature, sizeof(SignatureBytes));
    const std::size_t length = signature.kind == SignatureKind::ed25519       ? sizeof(SignatureBytes)
                               : signature.kind == SignatureKind::hmac_sha256 ? sizeof(Digest)
                                                                              : 0;
    if ((is_signed && !is_key_id(signature.key_id)) || !is_zero(as_bytes(field.substr(used))) ||
        !is_zero(signature_bytes.subspan(length)))
        return fail(ErrorCode::corrupt, "the signature's key id or unused bytes are wrong");
    return signature;
}

} // namespace

std::uint64_t least_stored(std::uint64_t raw) noexcept { return raw / k_most_expansion; }

EnvelopeBytes to_bytes(const Envelope& envelope)
{
    EnvelopeBytes bytes{};
    std::memcpy(bytes.data() + at::magic, k_magic.data(), k_magic.size());
    store(bytes, at::version, envelope.version);
    store(bytes, at::kind, static_cast<std::uint32_t>(envelope.kind));
    store(bytes, at::header_size, envelope.header_size);
    store(bytes, at::payload_stored, envelope.payload_stored);
    store(bytes, at::payload_raw, envelope.payload_raw);
    store(bytes, at::compression, static_cast<std::uint32_t>(envelope.compression));
    store(bytes, at::payload_digest, envelope.payload_digest.bytes);
    store(bytes, at::header_digest, envelope.header_digest.bytes);
    store(bytes, at::key_digest, envelope.key_digest.bytes);
    store(bytes, at::first_seal, seal_of_first_bytes(bytes).bytes);
    store(bytes, at::signature_kind, static_cast<std::uint32_t>(envelope.signature.kind));
    std::memcpy(bytes.data() + at::key_id, envelope.signature.key_id.data(), envelope.signature.key_id.size());
    store(bytes, at::signature, envelope.signature.bytes);
    store(bytes, at::signature_seal, seal_of_signature(bytes).bytes);
    return bytes;
}

std::optional<std::uint32_t> stored_format_version(ByteView prefix)
{
    if (prefix.size() < at::reserved || as_text(prefix.first(k_magic.size())) != k_magic) return std::nullopt;
    if (!first_bytes_are_whole(prefix)) return std::nullopt;
    return load<std::uint32_t>(prefix, at::version);
}

Result<Envelope> parse_envelope(ByteView prefix, const Limits& limits)
{
    if (prefix.size() < k_envelope_bytes)
        return fail(ErrorCode::corrupt, "entry has {} bytes, its envelope alone takes {}", prefix.size(),
                    k_envelope_bytes);
    if (as_text(prefix.first(k_magic.size())) != k_magic)
        return fail(ErrorCode::corrupt, "entry does not start with warmgraph's magic bytes");
    if (!first_bytes_are_whole(prefix))
        return fail(ErrorCode::corrupt, "the first bytes do not match their digest: the entry is damaged");
    if (const auto version = load<std::uint32_t>(prefix, at::version); version != k_format_version)
        return fail(ErrorCode::stale, "entry has format {}, this warmgraph reads {}", version, k_format_version);

    const auto kind = load<std::uint32_t>(prefix, at::kind);
    if (kind != static_cast<std::uint32_t>(EntryKind::graph) &&
        kind != static_cast<std::uint32_t>(EntryKind::tombstone))
        return fail(ErrorCode::corrupt, "entry kind {} is unknown", kind);
    const auto compression = load<std::uint32_t>(prefix, at::compression);
    if (compression > static_cast<std::uint32_t>(Compression::zstd))
        return fail(ErrorCode::corrupt, "compression {} is unknown", compression);
    if (const auto flags = load<std::uint32_t>(prefix, at::flags); flags != 0)
        return fail(ErrorCode::corrupt, "envelope flags are {:#x}, expected 0", flags);
    if (!is_zero(prefix.subspan(at::reserved, at::signature_kind - at::reserved)))
        return fail(ErrorCode::corrupt, "reserved envelope bytes are not zero");

    Envelope envelope;
    envelope.kind = static_cast<EntryKind>(kind);
    envelope.header_size = load<std::uint64_t>(prefix, at::header_size);
    envelope.payload_stored = load<std::uint64_t>(prefix, at::payload_stored);
    envelope.payload_raw = load<std::uint64_t>(prefix, at::payload_raw);
    envelope.compression = static_cast<Compression>(compression);
    envelope.payload_digest = load<Digest>(prefix, at::payload_digest);
    envelope.header_digest = load<Digest>(prefix, at::header_digest);
    envelope.key_digest = load<Digest>(prefix, at::key_digest);
    if (auto ok = check_size("header", envelope.header_size, limits.header_bytes); !ok)
        return std::unexpected(ok.error());
    if (auto ok = check_payload_sizes(envelope, limits); !ok) return std::unexpected(ok.error());
    auto signature = parse_signature(prefix);
    if (!signature) return std::unexpected(std::move(signature.error()));
    envelope.signature = std::move(*signature);
    return envelope;
}

Digest key_digest(const EntryKey& key)
{
    Sha256 hash;
    hash.update_field(k_key_domain);
    hash.update_field(key.function.model_info).update_field(key.function.rank).update_field(key.function.function);
    hash.update_field(ByteView{key.guards_digest.bytes});
    return hash.finish();
}

Digest seal(const Envelope& envelope, ByteView header)
{
    Envelope unsealed = envelope;
    unsealed.header_digest = {};
    Sha256 hash;
    hash.update_field(k_entry_domain);
    hash.update(ByteView{to_bytes(unsealed)}.first(at::signature_kind));
    hash.update(header);
    return hash.finish();
}

} // namespace warmgraph::cachefmt
