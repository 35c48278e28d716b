// Whose entries are believed, and which key signs this process's own. docs/trust.md says what a signature covers.
#pragma once

#include <memory>
#include <vector>

#include "warmgraph/base/signing_key.hpp"

namespace warmgraph::cachefmt {

/// Values; thread-safe once made. Without any key nothing is signed, and signatures are not looked at.
struct Trust {
    std::shared_ptr<const SigningKey> sign_with{};             ///< null: entries are written unsigned. A secret one
    std::vector<std::shared_ptr<const SigningKey>> accepted{}; ///< beside sign_with, which is accepted too
    bool require = false; ///< an entry without an accepted signature is `untrusted`

    /// Known ids are looked for by id; several may be accepted while keys are rotated.
    [[nodiscard]] const SigningKey* find(std::string_view id) const noexcept
    {
        if (sign_with && sign_with->id() == id) return sign_with.get();
        for (const auto& key : accepted)
            if (key->id() == id) return key.get();
        return nullptr;
    }
};

} // namespace warmgraph::cachefmt
