// A sealed file: facts as text, contents, and an optional signature. The cache keeps compiled programs and PyTorch's
// artifacts in this form. docs/format.md has the layout.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/base/sha256.hpp"
#include "warmgraph/base/signing_key.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::cachefmt {

/// Constants that all files of one kind share. Thread-safe.
struct SealedKind {
    std::string_view magic; ///< the file's first 8 bytes
    std::uint32_t format;
    std::string_view name;            ///< for messages: "compiled program"
    std::string_view digest_label;    ///< hashed before the signed data, so that two kinds never share a digest
    std::string_view signature_label; ///< put before the signed message, for the same reason
    std::uint64_t most_facts;         ///< limit for the facts, in bytes
};

/// Bytes before the facts.
inline constexpr std::size_t k_sealed_head = 184;

/// Views into the file's bytes, which must outlive them.
struct SealedObject {
    ByteView facts;
    ByteView contents;               ///< shorter than contents_size if the file was cut or read in part
    std::uint64_t contents_size = 0; ///< the size that the file states
    Digest digest;                   ///< covers sizes and facts; a signature signs it
    SignatureKind kind = SignatureKind::none;
    std::string key_id{}; ///< the id of the key that is said to have signed the file; may be any text
    SignatureBytes signature{};

    /// True for a signature of a known kind with a valid key id.
    [[nodiscard]] bool is_signed() const noexcept;
    /// True if this key signed the file.
    [[nodiscard]] bool is_signed_by(const SigningKey& key, const SealedKind& of) const;
};

/// Deterministic. REQUIRES: `facts` has at most of.most_facts bytes and contains a digest of the contents. A null
/// sign_with leaves the file unsigned. Errors come from signing.
[[nodiscard]] Result<Bytes> seal(const SealedKind& of, std::string_view facts, ByteView contents,
                                 const SigningKey* sign_with);

/// Parses a file, or its first part with the facts, and checks that nothing before the contents has changed. Does not
/// check the contents and the signature. corrupt: another kind of file, cut, or damaged; stale: another format.
[[nodiscard]] Result<SealedObject> open_sealed(const SealedKind& of, ByteView bytes);

/// `untrusted`: the file is not signed by a key that `trust` accepts. Ignores `trust.require`, which the caller checks.
[[nodiscard]] Result<void> check_signature(const SealedKind& of, const SealedObject& sealed, const Trust& trust);

} // namespace warmgraph::cachefmt
