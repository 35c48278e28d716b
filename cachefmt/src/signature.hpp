// An entry's signature: what it covers, and whether it is accepted. docs/format.md, "Signature".
#pragma once

#include "envelope.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::cachefmt {

/// Signs the envelope, whose three digests are final.
[[nodiscard]] Result<void> sign(Envelope& envelope, const SigningKey& key);

/// REQUIRES: the digests of key and header are verified; the payload need not be read. `untrusted`: no accepted
/// signature and one is required, or one under a known key's id that is not this key's. Gives the id of the key that
/// signed it; empty where there is none that is known.
[[nodiscard]] Result<std::string> check_signature(const Envelope& envelope, const Trust& trust);

} // namespace warmgraph::cachefmt
