// An artifact as it lies in a remote: its bytes, with its name, its digest and a signature before them. Entries are signed by
// themselves, and images are named by their digest; the other kinds get here what a shared store needs. docs/format.md.
#pragma once

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/base/error.hpp"
#include "warmgraph/cachefmt/trust.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::remote {

/// The most bytes that a seal adds to an artifact.
inline constexpr std::uint64_t k_seal_bytes = 1024;

/// Signs with trust.sign_with; without a key the seal has a digest alone.
[[nodiscard]] Result<Bytes> seal(const store::ArtifactName& name, ByteView bytes, const cachefmt::Trust& trust);

/// Returns the artifact's bytes. corrupt: it is damaged, or was put under another name; untrusted: trust.require, and no
/// accepted key signed it.
[[nodiscard]] Result<Bytes> unseal(const store::ArtifactName& name, ByteView sealed, const cachefmt::Trust& trust);

} // namespace warmgraph::remote
