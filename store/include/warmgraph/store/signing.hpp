// Which keys sign and are accepted: from a program's options, key files and the environment. docs/trust.md is for
// users.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::store {

/// What a program says. Keys are lines as in base/signing_key.hpp; a file has one on each line, and lines after '#'
/// that do not count.
struct SigningSource {
    std::string sign_with{};           ///< a key; else $WARMGRAPH_SIGN_KEY
    std::string sign_with_file{};      ///< of one secret key; else $WARMGRAPH_SIGN_KEY_FILE
    std::vector<std::string> accept{}; ///< keys; else $WARMGRAPH_ACCEPT_KEYS (with commas between)
    std::string accept_file{};         ///< else $WARMGRAPH_ACCEPT_KEYS_FILE
    bool require = false;              ///< or $WARMGRAPH_REQUIRE_SIGNED=1

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

/// The environment's keys to sign with count where `given` has none, and likewise those that are accepted.
/// invalid_argument (a line that is no key, a public key to sign with, two keys of one id, a signature required and
/// no key), not_found and permission_denied (a key file that others may write): which key or file, never its secret.
[[nodiscard]] Result<cachefmt::Trust> resolve_signing(const SigningSource& given, const EnvironmentReader& environment);

/// The keys of a file.
[[nodiscard]] Result<std::vector<SigningKey>> read_key_file(const std::string& path);

} // namespace warmgraph::store
