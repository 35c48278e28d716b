#include "signature.hpp"

#include <fmt/ranges.h>

namespace warmgraph::cachefmt {
namespace {

constexpr std::string_view k_signature_domain = "warmgraph signature 1";

void append_field(Bytes& bytes, std::string_view text)
{
    append(bytes, std::uint64_t{text.size()});
    append(bytes, as_bytes(text));
}

/// Fields have fixed lengths or follow their length, so that different envelopes never share a message.
Bytes message_of(const Envelope& envelope)
{
    Bytes message;
    append_field(message, k_signature_domain);
    append(message, static_cast<std::uint32_t>(envelope.signature.kind));
    append_field(message, envelope.signature.key_id);
    for (const Digest* digest : {&envelope.key_digest, &envelope.header_digest, &envelope.payload_digest})
        append(message, ByteView{digest->bytes});
    return message;
}

std::string accepted_ids(const Trust& trust)
{
    std::vector<std::string_view> ids;
    if (trust.sign_with) ids.push_back(trust.sign_with->id());
    for (const auto& key : trust.accepted) ids.push_back(key->id());
    return ids.empty() ? "none" : fmt::format("{}", fmt::join(ids, ", "));
}

} // namespace

Result<void> sign(Envelope& envelope, const SigningKey& key)
{
    envelope.signature = {key.kind(), key.id(), {}};
    auto signature = key.sign(message_of(envelope));
    if (!signature) return std::unexpected(std::move(signature.error()));
    envelope.signature.bytes = *signature;
    return {};
}

Result<std::string> check_signature(const Envelope& envelope, const Trust& trust)
{
    const Signature& signature = envelope.signature;
    if (signature.kind == SignatureKind::none) {
        if (!trust.require) return std::string{};
        return fail(ErrorCode::untrusted, "entry is not signed, and a signature is required: record it again with "
                                          "a key to sign, or sign it with `warmgraph sign`");
    }
    const SigningKey* const key = trust.find(signature.key_id);
    if (key == nullptr) {
        if (!trust.require) return std::string{};
        return fail(ErrorCode::untrusted, "entry is signed with key '{}', accepted are: {}", signature.key_id,
                    accepted_ids(trust));
    }
    if (key->kind() != signature.kind)
        return fail(ErrorCode::untrusted, "entry is signed with an {} key '{}', the accepted one is {}",
                    to_string(signature.kind), signature.key_id, to_string(key->kind()));
    if (!key->verifies(message_of(envelope), signature.bytes))
        return fail(ErrorCode::untrusted,
                    "entry's signature was not made with key '{}': the entry was signed with another key, or the "
                    "signature is forged",
                    signature.key_id);
    return signature.key_id;
}

} // namespace warmgraph::cachefmt
