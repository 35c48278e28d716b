#include "warmgraph/autotune/library.hpp"

namespace warmgraph::autotune {
namespace {

store::Name name_of(const Digest& key) { return store::ArtifactName{store::ArtifactKind::best_config, key}; }

} // namespace

Result<std::optional<BestConfig>> Library::find(const Digest& key) const
{
    const auto found = m_tier.get(name_of(key), {k_best_config_cap});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->bytes) return std::unexpected((*found)->bytes.error());
    auto best = decode(*(*found)->bytes);
    if (!best) return std::unexpected(best.error());
    if (best->key != key)
        return fail(ErrorCode::stale, "it is stored under {}, and is of {}", short_hex(key), short_hex(best->key));
    return std::move(*best);
}

Result<void> Library::put(const BestConfig& best)
{
    const std::string text = encode(best);
    if (text.size() > k_best_config_cap)
        return fail(ErrorCode::unsupported, "the tuned configuration of '{}' takes {} bytes, at most {} are stored",
                    best.kernel, text.size(), k_best_config_cap);
    return m_tier.put(name_of(best.key), as_bytes(text));
}

Result<void> Library::remove(const Digest& key) { return m_tier.remove(name_of(key)); }

} // namespace warmgraph::autotune
