// Makes damaged or hostile entry bytes pass every digest, as an attacker who can write to the cache folder can. The
// code was written from docs/format.md, without using the library's code. So it is a second implementation of the seal.
#pragma once

#include <algorithm>
#include <cstdint>

#include "warmgraph/cachefmt/entry.hpp"

namespace warmgraph::test {

namespace envelope_at {
inline constexpr std::size_t version = 8, kind = 12, header_size = 16, payload_stored = 24, payload_raw = 32,
                             compression = 40, flags = 44, payload_digest = 48, header_digest = 80, key_digest = 112,
                             first_seal = 144, reserved = 176, signature_kind = 192, key_id = 196, signature = 256,
                             signature_seal = 320, end = 352;
} // namespace envelope_at

template <class T>
void poke(Bytes& bytes, std::size_t offset, const T& value)
{
    std::memcpy(bytes.data() + offset, &value, sizeof value);
}

/// Sets the two seals beside the digests: the seal of the first bytes, and the seal of the signature that is there.
inline void reseal_marks(Bytes& bytes)
{
    const ByteView all{bytes};
    Sha256 first;
    first.update_field("warmgraph first bytes 1").update(all.first(envelope_at::payload_digest));
    poke(bytes, envelope_at::first_seal, first.finish().bytes);
    Sha256 signature;
    signature.update_field("warmgraph signature block 1")
        .update(all.subspan(envelope_at::header_digest, sizeof(Digest)));
    signature.update(
        all.subspan(envelope_at::signature_kind, envelope_at::signature_seal - envelope_at::signature_kind));
    poke(bytes, envelope_at::signature_seal, signature.finish().bytes);
}

/// Makes all digests and seals match. If a size is too large, only the bytes that exist are used. REQUIRES: at least an
/// envelope.
inline void reseal(Bytes& bytes, const cachefmt::EntryKey& key)
{
    const std::uint64_t rest = bytes.size() - envelope_at::end;
    const auto header_size = std::min(load<std::uint64_t>(bytes, envelope_at::header_size), rest);
    const auto payload_size = std::min(load<std::uint64_t>(bytes, envelope_at::payload_stored), rest - header_size);
    const ByteView all{bytes};
    poke(bytes, envelope_at::payload_digest, sha256(all.subspan(envelope_at::end + header_size, payload_size)).bytes);

    Sha256 key_hash;
    key_hash.update_field("warmgraph key 1").update_field(key.function.model_info).update_field(key.function.rank);
    key_hash.update_field(key.function.function).update_field(ByteView{key.guards_digest.bytes});
    poke(bytes, envelope_at::key_digest, key_hash.finish().bytes);

    reseal_marks(bytes); // before the header digest, which covers the first bytes' seal
    poke(bytes, envelope_at::header_digest, Digest{}.bytes);
    Sha256 hash;
    hash.update_field("warmgraph entry 1").update(all.first(envelope_at::signature_kind));
    hash.update(all.subspan(envelope_at::end, header_size));
    poke(bytes, envelope_at::header_digest, hash.finish().bytes);
    reseal_marks(bytes); // again, because the signature's seal covers the header digest
}

} // namespace warmgraph::test
