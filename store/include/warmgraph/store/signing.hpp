// Finds the signing and the accepted keys in options, key files and the environment. docs/trust.md is for users.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::store {

/// The program's options. Keys are lines as in base/signing_key.hpp. A key file has one key a line, and '#' comments.
struct SigningSource {
    std::string sign_with{};           ///< a key; else $WARMGRAPH_SIGN_KEY
    std::string sign_with_file{};      ///< a file with one secret key; else $WARMGRAPH_SIGN_KEY_FILE
    std::vector<std::string> accept{}; ///< keys; else $WARMGRAPH_ACCEPT_KEYS (separated by commas)
    std::string accept_file{};         ///< a file with keys; else $WARMGRAPH_ACCEPT_KEYS_FILE
    bool require = false;              ///< signatures are required; also set by $WARMGRAPH_REQUIRE_SIGNED=1

    SigningSource() = default;
    SigningSource(const SigningSource&) = default;
    SigningSource(SigningSource&&) = default;
    SigningSource& operator=(const SigningSource&) = default;
    SigningSource& operator=(SigningSource&&) = default;
    ~SigningSource() { forget(); }
    /// Overwrites the keys.
    void forget() noexcept;
};

using EnvironmentReader = std::function<std::optional<std::string>(const char*)>;

/// The environment's signing key is used when `given` has no signing key, and the environment's accepted keys when
/// `given` has no accepted keys. Errors name the key or file, never its secret: invalid_argument (a line that is not a
/// key, a public key to sign with, two keys with one id, signatures required but no key), not_found, and
/// permission_denied (a key file that others may write).
[[nodiscard]] Result<cachefmt::Trust> resolve_signing(const SigningSource& given, const EnvironmentReader& environment);

[[nodiscard]] Result<std::vector<SigningKey>> read_key_file(const std::string& path);

} // namespace warmgraph::store
