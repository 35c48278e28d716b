#include "warmgraph/base/sha256.hpp"

#include <cstdint>
#include <new>
#include <stdexcept>

#include <openssl/evp.h>

namespace warmgraph {
namespace {

struct FreeContext {
    void operator()(EVP_MD_CTX* context) const noexcept { EVP_MD_CTX_free(context); }
};

void require(int status, const char* call)
{
    if (status != 1) throw std::runtime_error(std::string(call) + " failed: OpenSSL has no usable SHA-256");
}

/// Returns SHA-256. It is fetched once, because EVP_sha256() searches for its provider at each use, which takes longer
/// than a short digest. It is never freed, because digests are needed until the process ends.
const EVP_MD* algorithm()
{
    static const EVP_MD* const s_fetched = EVP_MD_fetch(nullptr, "SHA256", nullptr);
    return s_fetched != nullptr ? s_fetched : EVP_sha256();
}

std::optional<unsigned> hex_value(char digit) noexcept
{
    if (digit >= '0' && digit <= '9') return static_cast<unsigned>(digit - '0');
    if (digit >= 'a' && digit <= 'f') return static_cast<unsigned>(digit - 'a') + 10;
    if (digit >= 'A' && digit <= 'F') return static_cast<unsigned>(digit - 'A') + 10;
    return std::nullopt;
}

} // namespace

struct Sha256::Impl {
    std::unique_ptr<EVP_MD_CTX, FreeContext> context{EVP_MD_CTX_new()};

    Impl()
    {
        if (!context) throw std::bad_alloc();
        start();
    }
    void start() { require(EVP_DigestInit_ex(context.get(), algorithm(), nullptr), "EVP_DigestInit_ex"); }
};

Sha256::Sha256() : m_impl(std::make_unique<Impl>()) {}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

Sha256& Sha256::update(ByteView bytes)
{
    require(EVP_DigestUpdate(m_impl->context.get(), bytes.data(), bytes.size()), "EVP_DigestUpdate");
    return *this;
}

Sha256& Sha256::update_field(ByteView bytes)
{
    const std::uint64_t size = bytes.size();
    update(std::as_bytes(std::span{&size, 1}));
    return update(bytes);
}

Sha256& Sha256::update_field(std::string_view text) { return update_field(as_bytes(text)); }

Digest Sha256::finish()
{
    Digest digest;
    unsigned size = 0;
    require(EVP_DigestFinal_ex(m_impl->context.get(), reinterpret_cast<unsigned char*>(digest.bytes.data()), &size),
            "EVP_DigestFinal_ex");
    m_impl->start();
    return digest;
}

Digest sha256(ByteView bytes) { return Sha256().update(bytes).finish(); }

std::string to_hex(const Digest& digest)
{
    constexpr std::string_view k_digits = "0123456789abcdef";
    std::string text;
    text.reserve(2 * digest.bytes.size());
    for (const std::byte byte : digest.bytes) {
        text += k_digits[std::to_integer<std::size_t>(byte >> 4)];
        text += k_digits[std::to_integer<std::size_t>(byte & std::byte{15})];
    }
    return text;
}

std::string short_hex(const Digest& digest) { return to_hex(digest).substr(0, 8); }

std::optional<Digest> digest_from_hex(std::string_view hex)
{
    Digest digest;
    if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
    for (std::size_t i = 0; i < digest.bytes.size(); ++i) {
        const auto high = hex_value(hex[2 * i]);
        const auto low = hex_value(hex[2 * i + 1]);
        if (!high || !low) return std::nullopt;
        digest.bytes[i] = static_cast<std::byte>(*high * 16 + *low);
    }
    return digest;
}

std::optional<Digest> digest_from_our_hex(std::string_view hex)
{
    auto digest = digest_from_hex(hex);
    return digest && to_hex(*digest) == hex ? digest : std::nullopt;
}

} // namespace warmgraph
