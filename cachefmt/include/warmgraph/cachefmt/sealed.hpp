// A sealed file: facts as text, contents, and a signature where somebody signed it. What a compiler made of a program and
// what PyTorch compiled are kept so. docs/format.md has the layout.
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

/// What all files of one kind have in common. Constants: thread-safe.
struct SealedKind {
    std::string_view magic; ///< its first 8 bytes
    std::uint32_t format;
    std::string_view name;            ///< for messages: "compiled program"
    std::string_view digest_label;    ///< hashed before what is signed, so that no other kind has the same digest
    std::string_view signature_label; ///< the same of the message that is signed
    std::uint64_t most_facts;         ///< bytes of the facts
};

/// Bytes before the facts.
inline constexpr std::size_t k_sealed_head = 184;

/// As it lies in the file's bytes, which outlive it.
struct Sealed {
    ByteView facts;
    ByteView contents;               ///< shorter than contents_size where the file was cut, or read in part
    std::uint64_t contents_size = 0; ///< as the file says
    Digest digest;                   ///< of sizes and facts: what a signature stands for
    SignatureKind kind = SignatureKind::none;
    std::string key_id{}; ///< that it claims to be signed with; may be any text
    SignatureBytes signature{};

    /// A signature of a known kind, by a key with a possible id.
    [[nodiscard]] bool is_signed() const noexcept;
    /// This key signed it.
    [[nodiscard]] bool is_signed_by(const SigningKey& key, const SealedKind& of) const;
};

/// The same bytes at every call. REQUIRES: at most of.most_facts bytes of facts, which hold a digest of the contents.
/// sign_with: null: it is not signed. Errors are the key's.
[[nodiscard]] Result<Bytes> seal(const SealedKind& of, std::string_view facts, ByteView contents,
                                 const SigningKey* sign_with);

/// Where nothing before the contents has changed; of these nothing is checked, and neither is the signature. `bytes`: a
/// file, or its first part with the facts. corrupt: another kind's, cut, or damaged; stale: another format.
[[nodiscard]] Result<Sealed> open_sealed(const SealedKind& of, ByteView bytes);

/// `untrusted`: no key that `trust` accepts signed it. Asked in any case: `trust.require` is the caller's to look at.
[[nodiscard]] Result<void> check_signature(const SealedKind& of, const Sealed& sealed, const Trust& trust);

} // namespace warmgraph::cachefmt
