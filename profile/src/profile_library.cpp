#include "warmgraph/profile/profile_library.hpp"

namespace warmgraph::profile {

Result<Bytes> ProfileCodec::encode(const Profile& profile)
{
    const std::string text = profile::encode(profile);
    const ByteView bytes = as_bytes(text);
    return Bytes(bytes.begin(), bytes.end());
}

Result<std::optional<Profile>> ProfileLibrary::find(const Digest& key) const
{
    const store::Tiers& tiers = m_profiles.tiers();
    auto known = m_profiles.find_in(*tiers.front(), key);
    for (std::size_t i = 1; i < tiers.size(); ++i) {
        auto below = m_profiles.find_in(*tiers[i], key);
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

Result<std::optional<ProfileLibrary::MergeResult>> ProfileLibrary::merge(const Profile& own) const
{
    std::unique_ptr<FileLock> held;
    if (m_lock) {
        auto lock = m_lock(Profiles::name_of(own.key));
        if (!lock) return std::unexpected(lock.error());
        if (!*lock) return std::nullopt;
        held = std::move(*lock);
    }
    MergeResult merged{own};
    auto there = m_profiles.find_in(*m_profiles.tiers().front(), own.key);
    if (!there && there.error().code != ErrorCode::corrupt) return std::unexpected(there.error());
    if (!there) merged.replaced = there.error();
    if (there && *there) {
        auto joined = join(std::move(**there), own);
        if (!joined) return std::unexpected(joined.error());
        merged.profile = std::move(*joined);
    }
    if (auto done = m_profiles.put(merged.profile); !done) return std::unexpected(done.error());
    return merged;
}

} // namespace warmgraph::profile
