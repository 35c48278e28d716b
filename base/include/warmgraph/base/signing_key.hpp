// Keys that sign and verify, through OpenSSL: HMAC-SHA256 (RFC 2104) with a shared secret, Ed25519 (RFC 8032) with a
// private key that signs and a public key that verifies.
//
// A key as text is one line, "id:kind:hex": the id has 1 to 60 letters, digits, '.', '_' or '-'.
//   ci-2026:hmac-sha256:<64 to 128 hex digits>     signs and verifies
//   release:ed25519:<64 hex digits>                the private key: signs and verifies
//   release:ed25519-public:<64 hex digits>         verifies
// Secrets are wiped when their key goes, and no message has one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"

namespace warmgraph {

/// Stored in entries: the values stay.
enum class SignatureKind : std::uint32_t { none = 0, hmac_sha256 = 1, ed25519 = 2 };

[[nodiscard]] std::string_view to_string(SignatureKind kind) noexcept; ///< "hmac-sha256"

/// As it is stored: an HMAC has 32 bytes, and zeros behind them.
using SignatureBytes = std::array<std::byte, 64>;

inline constexpr std::size_t k_key_id_max = 60;
[[nodiscard]] bool is_key_id(std::string_view id) noexcept;

/// Overwrites the text, so that no freed memory keeps a secret.
void wipe(std::string& text) noexcept;

/// Move-only; const members are thread-safe.
class SigningKey {
public:
    /// invalid_argument says what is wrong, without the digits.
    [[nodiscard]] static Result<SigningKey> parse(std::string_view line);
    /// A new secret from the system's random numbers.
    [[nodiscard]] static Result<SigningKey> generate(std::string id, SignatureKind kind);

    SigningKey(SigningKey&&) noexcept;
    SigningKey& operator=(SigningKey&&) noexcept;
    ~SigningKey();

    [[nodiscard]] const std::string& id() const noexcept;
    [[nodiscard]] SignatureKind kind() const noexcept;
    [[nodiscard]] bool is_secret() const noexcept; ///< false: only the public half of an Ed25519 key

    /// REQUIRES: is_secret(). `internal` where OpenSSL fails.
    [[nodiscard]] Result<SignatureBytes> sign(ByteView message) const;
    [[nodiscard]] bool verifies(ByteView message, const SignatureBytes& signature) const noexcept;

    /// The line that parse() takes. It holds the secret: for a key file only.
    [[nodiscard]] std::string secret_line() const;
    /// The public half's line; empty for a shared secret, which has none.
    [[nodiscard]] std::string public_line() const;

private:
    struct Impl;
    explicit SigningKey(std::unique_ptr<Impl> impl) noexcept;
    std::unique_ptr<Impl> m_impl;
};

} // namespace warmgraph
