#include "warmgraph/cachefmt/sealed.hpp"

#include <cstring>

#include "warmgraph/base/printable.hpp"

namespace warmgraph::cachefmt {
namespace {

/// Offsets of the fields. All numbers are little-endian.
namespace field {
constexpr std::size_t format = 8, facts_size = 12, contents_size = 16, signature_kind = 24, key_id = 28, signature = 88,
                      seal = 152;
static_assert(signature - key_id == k_key_id_max && seal - signature == sizeof(SignatureBytes) &&
              seal + sizeof(Digest) == k_sealed_head);
} // namespace field

template <class T>
void put(Bytes& bytes, std::size_t at, const T& value)
{
    std::memcpy(bytes.data() + at, &value, sizeof value);
}

/// The digest that a signature signs: over sizes and facts, which contain the digest of the contents.
Digest digest_of(const SealedKind& of, ByteView file, ByteView facts)
{
    Sha256 hash;
    hash.update_field(of.digest_label);
    return hash.update_field(file.first(field::signature_kind)).update_field(facts).finish();
}

/// Returns a digest over everything before the facts, the signature included; through `digest` it covers the facts too.
Digest seal_of(ByteView file, const Digest& digest)
{
    Sha256 hash;
    return hash.update(digest.bytes).update(file.first(field::seal)).finish();
}

Bytes signed_message(const SealedKind& of, SignatureKind kind, std::string_view key_id, const Digest& digest)
{
    Bytes message;
    append(message, as_bytes(of.signature_label));
    append(message, static_cast<std::uint32_t>(kind));
    append(message, std::uint64_t{key_id.size()});
    append(message, as_bytes(key_id));
    append(message, digest.bytes);
    return message;
}

} // namespace

bool SealedObject::is_signed() const noexcept
{
    const bool is_known = kind == SignatureKind::hmac_sha256 || kind == SignatureKind::ed25519;
    return is_known && is_key_id(key_id);
}

bool SealedObject::is_signed_by(const SigningKey& key, const SealedKind& of) const
{
    return is_signed() && kind == key.kind() && key_id == key.id() &&
           key.verifies(signed_message(of, kind, key_id, digest), signature);
}

Result<Bytes> seal(const SealedKind& of, std::string_view facts, ByteView contents, const SigningKey* sign_with)
{
    Bytes file(k_sealed_head);
    file.reserve(k_sealed_head + facts.size() + contents.size());
    std::memcpy(file.data(), of.magic.data(), of.magic.size());
    put(file, field::format, of.format);
    put(file, field::facts_size, static_cast<std::uint32_t>(facts.size()));
    put(file, field::contents_size, std::uint64_t{contents.size()});
    const Digest digest = digest_of(of, file, as_bytes(facts));
    if (sign_with != nullptr) {
        const auto signature = sign_with->sign(signed_message(of, sign_with->kind(), sign_with->id(), digest));
        if (!signature) return std::unexpected(signature.error());
        put(file, field::signature_kind, static_cast<std::uint32_t>(sign_with->kind()));
        std::memcpy(file.data() + field::key_id, sign_with->id().data(), sign_with->id().size());
        put(file, field::signature, *signature);
    }
    put(file, field::seal, seal_of(file, digest));
    append(file, as_bytes(facts));
    append(file, contents);
    return file;
}

Result<SealedObject> open_sealed(const SealedKind& of, ByteView bytes)
{
    if (bytes.size() < k_sealed_head || as_text(bytes.first(of.magic.size())) != of.magic)
        return fail(ErrorCode::corrupt, "{} bytes are not a {}", bytes.size(), of.name);
    if (const auto format = load<std::uint32_t>(bytes, field::format); format != of.format)
        return fail(ErrorCode::stale, "the {} has format {}, expected {}", of.name, format, of.format);
    const auto size = load<std::uint32_t>(bytes, field::facts_size);
    if (size > of.most_facts || size > bytes.size() - k_sealed_head)
        return fail(ErrorCode::corrupt, "its facts are truncated: {} bytes expected, {} are there", size,
                    bytes.size() - k_sealed_head);
    SealedObject found{.facts = bytes.subspan(k_sealed_head, size),
                       .contents = bytes.subspan(k_sealed_head + size),
                       .contents_size = load<std::uint64_t>(bytes, field::contents_size),
                       .digest = {}};
    found.digest = digest_of(of, bytes, found.facts);
    if (load<Digest>(bytes, field::seal) != seal_of(bytes, found.digest))
        return fail(ErrorCode::corrupt, "its digest does not match: the file is damaged");
    // Removes trailing zeros. Other bytes behind the id make it invalid.
    const std::string_view id = as_text(bytes.subspan(field::key_id, k_key_id_max));
    found.kind = static_cast<SignatureKind>(load<std::uint32_t>(bytes, field::signature_kind));
    found.key_id = id.substr(0, id.find_last_not_of('\0') + 1);
    found.signature = load<SignatureBytes>(bytes, field::signature);
    return found;
}

Result<void> check_signature(const SealedKind& of, const SealedObject& sealed, const Trust& trust)
{
    if (sealed.kind == SignatureKind::none)
        return fail(ErrorCode::untrusted, "it is not signed, and a signature is required");
    const SigningKey* const key = trust.find(sealed.key_id);
    if (key == nullptr || key->kind() != sealed.kind)
        return fail(ErrorCode::untrusted, "it is signed with key '{}', which is not accepted",
                    printable(sealed.key_id));
    if (!sealed.is_signed_by(*key, of))
        return fail(
            ErrorCode::untrusted,
            "its signature was not made with key '{}': it was signed with another key, or the signature is forged",
            sealed.key_id);
    return {};
}

} // namespace warmgraph::cachefmt
