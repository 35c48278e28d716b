// Makes damaged or hostile bytes of a `.mega_cache` pass its digests, as an attacker who can write to the cache folder
// can, and signs them, as the owner of a key can. The code was written from docs/format.md, without using the library's
// code.
#pragma once

#include <algorithm>
#include <cstring>
#include <string_view>

#include "warmgraph/base/sha256.hpp"
#include "warmgraph/base/signing_key.hpp"

namespace warmgraph::test {

namespace torch_at {
inline constexpr std::size_t format = 8, facts_size = 12, bytes_size = 16, signature_kind = 24, key_id = 28,
                             signature = 88, seal = 152, facts = 184;
} // namespace torch_at

template <class T>
void write_at(Bytes& object, std::size_t offset, const T& value)
{
    std::memcpy(object.data() + offset, &value, sizeof value);
}

/// The text of the facts. Its size field says how long it is; if the size is too large, only the bytes that exist are
/// used.
inline ByteView torch_facts_of(ByteView object)
{
    const std::size_t rest = object.size() - torch_at::facts;
    return object.subspan(torch_at::facts,
                          std::min<std::size_t>(load<std::uint32_t>(object, torch_at::facts_size), rest));
}

inline Digest torch_digest(ByteView object)
{
    Sha256 hash;
    hash.update_field("warmgraph torch artifacts 1").update_field(object.first(torch_at::signature_kind));
    return hash.update_field(torch_facts_of(object)).finish();
}

/// If the facts contain a digest of the bytes after them, makes this digest match.
inline void fix_torch_bytes_digest(Bytes& object)
{
    constexpr std::string_view k_member = "\"sha256\":\"";
    const std::size_t facts = torch_facts_of(object).size();
    const auto at = as_text(torch_facts_of(object)).find(k_member);
    const std::string hex = to_hex(sha256(ByteView(object).subspan(torch_at::facts + facts)));
    if (at == std::string_view::npos || at + k_member.size() + hex.size() > facts) return;
    std::memcpy(object.data() + torch_at::facts + at + k_member.size(), hex.data(), hex.size());
}

inline void sign_torch(Bytes& object, const SigningKey& key)
{
    std::fill_n(object.begin() + torch_at::key_id, torch_at::signature - torch_at::key_id, std::byte{});
    write_at(object, torch_at::signature_kind, static_cast<std::uint32_t>(key.kind()));
    std::memcpy(object.data() + torch_at::key_id, key.id().data(), key.id().size());
    Bytes message;
    append(message, as_bytes("warmgraph torch signature 1"));
    append(message, static_cast<std::uint32_t>(key.kind()));
    append(message, std::uint64_t{key.id().size()});
    append(message, as_bytes(key.id()));
    append(message, torch_digest(object).bytes);
    if (const auto signature = key.sign(message)) write_at(object, torch_at::signature, *signature);
}

/// Makes all digests match, and signs. If a size is too large, only the bytes that exist are used. REQUIRES: all bytes
/// before the facts exist.
inline void seal_torch(Bytes& object)
{
    Sha256 hash;
    hash.update(torch_digest(object).bytes).update(ByteView(object).first(torch_at::seal));
    write_at(object, torch_at::seal, hash.finish());
}

} // namespace warmgraph::test
