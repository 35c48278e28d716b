// Keys that sign and verify, through OpenSSL: HMAC-SHA256 (RFC 2104) with a shared secret, Ed25519 (RFC 8032) with a
// private key that signs and a public key that verifies.
//
// A key as text is one line, "id:kind:hex": the id has 1 to 60 letters, digits, '.', '_' or '-'.
//   ci-2026:hmac-sha256:<64 to 128 hex digits>     signs and verifies
//   release:ed25519:<64 hex digits>                the private key: signs and verifies
//   release:ed25519-public:<64 hex digits>         verifies
// Secrets are wiped when their key is destroyed, and never appear in a message.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// The values are stored in entries: never change them.
enum class SignatureKind : std::uint32_t { none = 0, hmac_sha256 = 1, ed25519 = 2 };

[[nodiscard]] std::string_view to_string(SignatureKind kind) noexcept; ///< "hmac-sha256"

/// A signature in its stored form. An HMAC has 32 bytes, followed by zeros.
using SignatureBytes = std::array<std::byte, 64>;

inline constexpr std::size_t k_key_id_max = 60;
[[nodiscard]] bool is_key_id(std::string_view id) noexcept;

/// Overwrites the text, so that freed memory does not keep a secret.
void wipe(std::string& text) noexcept;

/// Move-only; const members are thread-safe.
class SigningKey {
public:
    /// Errors: invalid_argument; the message never has the digits.
    [[nodiscard]] static Result<SigningKey> parse(std::string_view line);
    /// Makes a new secret from the system's random numbers.
    [[nodiscard]] static Result<SigningKey> generate(std::string id, SignatureKind kind);

    SigningKey(SigningKey&&) noexcept;
    SigningKey& operator=(SigningKey&&) noexcept;
    ~SigningKey();

    [[nodiscard]] const std::string& id() const noexcept;
    [[nodiscard]] SignatureKind kind() const noexcept;
    [[nodiscard]] bool is_secret() const noexcept; ///< false for the public half of an Ed25519 key

    /// REQUIRES: is_secret(). Error: `internal` if OpenSSL fails.
    [[nodiscard]] Result<SignatureBytes> sign(ByteView message) const;
    [[nodiscard]] bool verifies(ByteView message, const SignatureBytes& signature) const noexcept;

    /// The line that parse() reads. It holds the secret: write it to a key file only.
    [[nodiscard]] std::string secret_line() const;
    /// The line of the public half; empty for a shared secret.
    [[nodiscard]] std::string public_line() const;

private:
    struct Impl;
    explicit SigningKey(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
