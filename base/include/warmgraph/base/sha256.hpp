// SHA-256 through OpenSSL's EVP interface (FIPS 180-4).
#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "warmgraph/base/bytes.hpp"

namespace warmgraph {

struct Digest {
    std::array<std::byte, 32> bytes{};
    auto operator<=>(const Digest&) const = default;
};

[[nodiscard]] std::string to_hex(const Digest& digest);                    ///< 64 lower-case digits
[[nodiscard]] std::string short_hex(const Digest& digest);                 ///< the first 8 digits, for people
[[nodiscard]] std::optional<Digest> digest_from_hex(std::string_view hex); ///< exactly 64 hex digits, else nullopt
/// Accepts only the spelling of to_hex(), so that one digest has one name ("AB" and "ab" would be two).
[[nodiscard]] std::optional<Digest> digest_from_our_hex(std::string_view hex);

/// Streaming hash. Not thread-safe; move-only.
class Sha256 {
public:
    Sha256();
    ~Sha256();
    Sha256(Sha256&&) noexcept;
    Sha256& operator=(Sha256&&) noexcept;

    Sha256& update(ByteView bytes);
    /// Hashes the length before the bytes, so that ("ab","c") and ("a","bc") differ.
    Sha256& update_field(ByteView bytes);
    Sha256& update_field(std::string_view text);
    [[nodiscard]] Digest finish();

private:
    struct Impl;
    std::unique_ptr<Impl> m_impl;
};

[[nodiscard]] Digest sha256(ByteView bytes);

} // namespace warmgraph
