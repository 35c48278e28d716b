#include "warmgraph/base/signing_key.hpp"

#include <algorithm>
#include <optional>

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/rand.h>

namespace warmgraph {
namespace {

constexpr std::size_t k_secret_least = 32, k_secret_most = 64; // bytes: output size and block size of HMAC-SHA256
constexpr std::size_t k_ed25519_bytes = 32;
constexpr std::size_t k_hmac_bytes = 32;

struct FreeKey {
    void operator()(EVP_PKEY* key) const noexcept { EVP_PKEY_free(key); } // wipes the private half
};
using NativeKey = std::unique_ptr<EVP_PKEY, FreeKey>;

struct FreeSigningContext {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

const unsigned char* chars(ByteView bytes) noexcept { return reinterpret_cast<const unsigned char*>(bytes.data()); }
unsigned char* chars(SignatureBytes& bytes) noexcept { return reinterpret_cast<unsigned char*>(bytes.data()); }

/// Wipes its bytes when it is destroyed. Has a fixed size: a vector that grows would leave a copy in freed memory.
class Secret {
public:
    Secret() = default;
    Secret(const Secret&) = delete;
    Secret& operator=(const Secret&) = delete;
    ~Secret() { OPENSSL_cleanse(m_bytes.data(), m_bytes.size()); }

    [[nodiscard]] unsigned char* data() noexcept { return m_bytes.data(); }
    [[nodiscard]] const unsigned char* data() const noexcept { return m_bytes.data(); }
    [[nodiscard]] std::size_t size() const noexcept { return m_size; }
    void resize(std::size_t size) noexcept { m_size = size; }

private:
    std::array<unsigned char, k_secret_most> m_bytes{};
    std::size_t m_size = 0;
};

std::optional<unsigned> digit_of(char digit) noexcept
{
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
    if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A') + 10;
    return std::nullopt;
}

bool read_hex(std::string_view hex, Secret& out) noexcept
{
    if (hex.size() % 2 != 0 || hex.size() / 2 > k_secret_most) return false;
    for (std::size_t i = 0; i < hex.size(); i += 2) {
        const auto high = digit_of(hex[i]), low = digit_of(hex[i + 1]);
        if (!high || !low) return false;
        out.data()[i / 2] = static_cast<unsigned char>(*high * 16 + *low);
    }
    out.resize(hex.size() / 2);
    return true;
}

std::string to_hex(const unsigned char* bytes, std::size_t size)
{
    constexpr std::string_view k_digits = "0123456789abcdef";
    std::string hex;
    hex.reserve(2 * size);
    for (std::size_t i = 0; i < size; ++i) hex.append({k_digits[bytes[i] / 16U], k_digits[bytes[i] % 16U]});
    return hex;
}

Result<SignatureBytes> sign_hmac(const Secret& secret, ByteView message)
{
    SignatureBytes signature{};
    unsigned size = 0;
    if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), chars(message), message.size(),
             chars(signature), &size) == nullptr ||
        size != k_hmac_bytes)
        return fail(ErrorCode::internal, "OpenSSL cannot compute HMAC-SHA256");
    return signature;
}

Result<SignatureBytes> sign_ed25519(EVP_PKEY* key, ByteView message)
{
    SignatureBytes signature{};
    std::size_t size = signature.size();
    const std::unique_ptr<EVP_MD_CTX, FreeSigningContext> context{EVP_MD_CTX_new()};
    if (!context || EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, key) != 1 ||
        EVP_DigestSign(context.get(), chars(signature), &size, chars(message), message.size()) != 1 ||
        size != signature.size())
        return fail(ErrorCode::internal, "OpenSSL cannot sign with Ed25519");
    return signature;
}

bool verify_ed25519(EVP_PKEY* key, ByteView message, const SignatureBytes& signature) noexcept
{
    const std::unique_ptr<EVP_MD_CTX, FreeSigningContext> context{EVP_MD_CTX_new()};
    return context && EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key) == 1 &&
           EVP_DigestVerify(context.get(), chars(signature), signature.size(), chars(message), message.size()) == 1;
}

} // namespace

struct SigningKey::Impl {
    std::string id{};
    SignatureKind kind = SignatureKind::none;
    bool is_secret = true;
    Secret secret{};    ///< HMAC-SHA256: the secret; Ed25519: the private half if `is_secret`, else the public half
    NativeKey native{}; ///< Ed25519 only

    /// Makes the Ed25519 key from `secret`.
    [[nodiscard]] Result<void> make_native()
    {
        native.reset(is_secret ? EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, secret.data(), secret.size())
                               : EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, secret.data(), secret.size()));
        if (!native) return fail(ErrorCode::invalid_argument, "signing key '{}': OpenSSL does not take it", id);
        return {};
    }
};

std::string_view to_string(SignatureKind kind) noexcept
{
    switch (kind) {
    case SignatureKind::none: return "none";
    case SignatureKind::hmac_sha256: return "hmac-sha256";
    case SignatureKind::ed25519: return "ed25519";
    }
    return "unknown";
}

bool is_key_id(std::string_view id) noexcept
{
    return !id.empty() && id.size() <= k_key_id_max && std::ranges::all_of(id, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
               c == '-';
    });
}

void wipe(std::string& text) noexcept
{
    OPENSSL_cleanse(text.data(), text.size());
    text.clear();
}

SigningKey::SigningKey(std::unique_ptr<Impl> impl) noexcept : m_impl(std::move(impl)) {}
SigningKey::SigningKey(SigningKey&&) noexcept = default;
SigningKey& SigningKey::operator=(SigningKey&&) noexcept = default;
SigningKey::~SigningKey() = default;

const std::string& SigningKey::id() const noexcept { return m_impl->id; }
SignatureKind SigningKey::kind() const noexcept { return m_impl->kind; }
bool SigningKey::is_secret() const noexcept { return m_impl->is_secret; }

Result<SigningKey> SigningKey::parse(std::string_view line)
{
    const auto first = line.find(':');
    const auto second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos || !is_key_id(line.substr(0, first)))
        return fail(ErrorCode::invalid_argument,
                    "this line of {1} bytes is not a signing key, expected 'id:kind:hex' with an id of 1 to {0} "
                    "letters, digits, '.', '_' or '-'",
                    k_key_id_max, line.size());
    auto impl = std::make_unique<Impl>();
    impl->id = line.substr(0, first);
    const std::string_view kind = line.substr(first + 1, second - first - 1);
    const bool is_hmac = kind == "hmac-sha256";
    if (!is_hmac && kind != "ed25519" && kind != "ed25519-public")
        return fail(ErrorCode::invalid_argument,
                    "signing key '{}': its kind is unknown, expected hmac-sha256, ed25519 or ed25519-public", impl->id);
    impl->kind = is_hmac ? SignatureKind::hmac_sha256 : SignatureKind::ed25519;
    impl->is_secret = kind != "ed25519-public";
    const std::size_t least = is_hmac ? k_secret_least : k_ed25519_bytes;
    const std::size_t most = is_hmac ? k_secret_most : k_ed25519_bytes;
    const std::string_view hex = line.substr(second + 1);
    if (!read_hex(hex, impl->secret) || impl->secret.size() < least || impl->secret.size() > most)
        return fail(ErrorCode::invalid_argument,
                    "signing key '{}': {} characters follow its kind, expected {} to {} hex digits", impl->id,
                    hex.size(), 2 * least, 2 * most);
    if (!is_hmac)
        if (auto made = impl->make_native(); !made) return std::unexpected(std::move(made.error()));
    return SigningKey{std::move(impl)};
}

Result<SigningKey> SigningKey::generate(std::string id, SignatureKind kind)
{
    if (!is_key_id(id) || kind == SignatureKind::none)
        return fail(ErrorCode::invalid_argument, "a key's id has 1 to {} letters, digits, '.', '_' or '-'",
                    k_key_id_max);
    auto impl = std::make_unique<Impl>();
    impl->id = std::move(id);
    impl->kind = kind;
    impl->secret.resize(k_secret_least);
    if (RAND_bytes(impl->secret.data(), static_cast<int>(impl->secret.size())) != 1)
        return fail(ErrorCode::internal, "OpenSSL has no random numbers");
    if (kind == SignatureKind::ed25519)
        if (auto made = impl->make_native(); !made) return std::unexpected(std::move(made.error()));
    return SigningKey{std::move(impl)};
}

Result<SignatureBytes> SigningKey::sign(ByteView message) const
{
    if (!is_secret())
        return fail(ErrorCode::invalid_argument, "key '{}' is a public key, which cannot sign: give the secret key",
                    id());
    if (kind() == SignatureKind::hmac_sha256) return sign_hmac(m_impl->secret, message);
    return sign_ed25519(m_impl->native.get(), message);
}

bool SigningKey::verifies(ByteView message, const SignatureBytes& signature) const noexcept
{
    if (kind() == SignatureKind::ed25519) return verify_ed25519(m_impl->native.get(), message, signature);
    const auto expected = sign_hmac(m_impl->secret, message);
    return expected && CRYPTO_memcmp(expected->data(), signature.data(), signature.size()) == 0;
}

std::string SigningKey::secret_line() const
{
    return fmt::format("{}:{}:{}", id(), to_string(kind()), to_hex(m_impl->secret.data(), m_impl->secret.size()));
}

std::string SigningKey::public_line() const
{
    if (kind() != SignatureKind::ed25519) return {};
    std::array<unsigned char, k_ed25519_bytes> bytes{};
    std::size_t size = bytes.size();
    if (EVP_PKEY_get_raw_public_key(m_impl->native.get(), bytes.data(), &size) != 1) return {};
    return fmt::format("{}:ed25519-public:{}", id(), to_hex(bytes.data(), size));
}

} // namespace warmgraph
