// Signing entries and checking signatures. docs/format.md, "Signature", says what is covered.
#pragma once

#include "envelope.hpp"
#include "warmgraph/cachefmt/trust.hpp"

namespace warmgraph::cachefmt {

/// Signs the envelope. REQUIRES: its three digests are final.
[[nodiscard]] Result<void> sign(Envelope& envelope, const SigningKey& key);

/// REQUIRES: the digests of key and header are verified; the payload is not needed. Returns the id of the known key
/// that signed; empty if there is none. `untrusted`: a required signature is missing or unknown, or a signature under a
/// known id is not by that key.
[[nodiscard]] Result<std::string> check_signature(const Envelope& envelope, const Trust& trust);

} // namespace warmgraph::cachefmt
