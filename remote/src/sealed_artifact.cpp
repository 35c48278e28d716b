#include "sealed_artifact.hpp"

#include "warmgraph/base/sha256.hpp"
#include "warmgraph/cachefmt/sealed.hpp"

namespace warmgraph::remote {
namespace {

constexpr cachefmt::SealedKind k_sealed{.magic = "WGREMOTE",
                                        .format = 1,
                                        .name = "artifact of a remote",
                                        .digest_label = "warmgraph remote artifact digest",
                                        .signature_label = "warmgraph remote artifact signature",
                                        .most_facts = 512};

/// The facts: the name and the digest of the contents, a line each.
std::string facts_of(const store::ArtifactName& name, ByteView bytes)
{
    return fmt::format("{}\n{}\n", store::to_text(name), to_hex(sha256(bytes)));
}

} // namespace

Result<Bytes> seal(const store::ArtifactName& name, ByteView bytes, const cachefmt::Trust& trust)
{
    return cachefmt::seal(k_sealed, facts_of(name, bytes), bytes, trust.sign_with.get());
}

Result<Bytes> unseal(const store::ArtifactName& name, ByteView sealed, const cachefmt::Trust& trust)
{
    const auto opened = cachefmt::open_sealed(k_sealed, sealed);
    if (!opened) return std::unexpected(opened.error());
    if (trust.require)
        if (auto ok = cachefmt::check_signature(k_sealed, *opened, trust); !ok) return std::unexpected(ok.error());
    if (as_text(opened->facts) != facts_of(name, opened->contents))
        return fail(ErrorCode::corrupt, "it belongs to another name, or its contents have changed");
    return Bytes(opened->contents.begin(), opened->contents.end());
}

} // namespace warmgraph::remote
