#include "warmgraph/profile/library.hpp"

namespace warmgraph::profile {

store::ArtifactName name_of(const Digest& key) noexcept { return {store::ArtifactKind::profile, key}; }

Result<std::optional<Profile>> Library::find(const Digest& key) const
{
    const auto found = m_tier.get(name_of(key), {k_profile_cap});
    if (!found) return std::unexpected(found.error());
    if (!*found) return std::nullopt;
    if (!(*found)->bytes) return std::unexpected((*found)->bytes.error());
    auto profile = decode(*(*found)->bytes);
    if (!profile) return std::unexpected(profile.error());
    if (profile->key != key)
        return fail(ErrorCode::corrupt, "the profile is stored under {}, and is of {}", short_hex(key),
                    short_hex(profile->key));
    return std::move(*profile);
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
    auto there = find(own.key);
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
    if (auto done = m_tier.put(name_of(own.key), as_bytes(text)); !done) return std::unexpected(done.error());
    return merged;
}

} // namespace warmgraph::profile
