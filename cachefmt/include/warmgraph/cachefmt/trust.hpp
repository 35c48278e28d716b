// The keys whose signatures are accepted, and the key that signs this process's entries. See docs/trust.md.
#pragma once

#include <memory>
#include <vector>

#include "warmgraph/base/signing_key.hpp"

namespace warmgraph::cachefmt {

/// Immutable and thread-safe after construction. Without any key, nothing is signed and no signature is checked.
struct Trust {
    std::shared_ptr<const SigningKey> sign_with{}; ///< signs, and its signatures are accepted; null: do not sign
    std::vector<std::shared_ptr<const SigningKey>> accepted{}; ///< further keys
    bool require = false; ///< an entry without an accepted signature is `untrusted`

    /// Finds an accepted key by its id. Several keys may be accepted during a rotation.
    [[nodiscard]] const SigningKey* find(std::string_view id) const noexcept
    {
        if (sign_with && sign_with->id() == id) return sign_with.get();
        for (const auto& key : accepted)
            if (key->id() == id) return key.get();
        return nullptr;
    }
};

} // namespace warmgraph::cachefmt
