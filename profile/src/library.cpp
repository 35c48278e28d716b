#include "warmgraph/profile/library.hpp"

namespace warmgraph::profile {

store::ArtifactName name_of(const Digest& key) noexcept { return {store::ArtifactKind::profiles, key}; }

Result<std::optional<Profile>> Library::find_in(store::Tier& tier, const Digest& key) const
{
    const auto found = tier.get(name_of(key), {k_profile_cap});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    auto profile = (*found)->bytes ? decode(*(*found)->bytes) : std::unexpected((*found)->bytes.error());
    if (profile && profile->key != key)
        profile = fail(ErrorCode::corrupt, "the profile is stored under {}, and is of {}", short_hex(key),
                       short_hex(profile->key));
    if (profile) {
        static_cast<void>(tier.note_use(name_of(key))); // who only reads cannot
        return std::move(*profile);
    }
    if (&tier != m_tiers.front()) tier.refuse(name_of(key), (*found)->stamp, profile.error());
    return std::unexpected(std::move(profile.error()));
}

Result<std::optional<Profile>> Library::find(const Digest& key) const
{
    auto known = find_in(*m_tiers.front(), key);
    for (std::size_t i = 1; i < m_tiers.size(); ++i) {
        auto below = find_in(*m_tiers[i], key);
        if (known && !*known) {
            known = std::move(below);
        } else if (known && below && *below) {
            auto both = join(std::move(**known), **below);
            if (!both) return std::unexpected(both.error());
            known = std::move(*both);
        }
    }
    return known;
}

Result<std::optional<Library::Merged>> Library::merge(const Profile& own) const
{
    std::unique_ptr<FileLock> held;
    if (m_lock) {
        auto lock = m_lock(name_of(own.key));
        if (!lock) return std::unexpected(lock.error());
        if (!*lock) return std::nullopt;
        held = std::move(*lock);
    }
    Merged merged{own};
    auto there = find_in(*m_tiers.front(), own.key);
    if (!there && there.error().code != ErrorCode::corrupt) return std::unexpected(there.error());
    if (!there) merged.replaced = there.error();
    if (there && *there) {
        auto joined = join(std::move(**there), own);
        if (!joined) return std::unexpected(joined.error());
        merged.profile = std::move(*joined);
    }
    const std::string text = encode(merged.profile);
    if (text.size() > k_profile_cap)
        return fail(ErrorCode::unsupported, "the profile takes {} bytes, at most {} are stored", text.size(),
                    k_profile_cap);
    if (auto done = m_tiers.front()->put(name_of(own.key), as_bytes(text)); !done) return std::unexpected(done.error());
    return merged;
}

} // namespace warmgraph::profile
