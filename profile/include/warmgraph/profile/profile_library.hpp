// Finds shape profiles in the tiers of a store, and joins new counts with the stored profiles.
//
// Thread-safe if the tiers are thread-safe. A failure is an Error that the caller counts: it loses learnt sizes, but
// changes no results.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/profile/profile_file.hpp"
#include "warmgraph/store/artifacts.hpp"

namespace warmgraph::profile {

struct ProfileCodec {
    using Value = Profile;
    static constexpr store::ArtifactKind k_kind = store::ArtifactKind::profiles;
    static constexpr std::uint8_t k_form = 0;
    static constexpr std::uint64_t k_most_bytes = k_profile_cap;
    static constexpr ErrorCode k_misnamed = ErrorCode::corrupt;
    static constexpr store::RefusalScope k_refusing = store::RefusalScope::below_first;

    [[nodiscard]] static Digest key_of(const Profile& profile) { return profile.key; }
    [[nodiscard]] static Result<Profile> decode(ByteView bytes) { return profile::decode(bytes); }
    [[nodiscard]] static Result<Bytes> encode(const Profile& profile);
};
using Profiles = store::Artifacts<ProfileCodec>;

class ProfileLibrary {
public:
    /// Takes the lock that is held while a file is read, joined and put again, so that another writer's counts are not
    /// lost. Returns null if another process holds the lock. Not used for a tier without locks.
    using Lock = std::function<Result<std::unique_ptr<FileLock>>(const store::ArtifactName&)>;

    /// `tier` must outlive the library.
    explicit ProfileLibrary(store::Tier& tier, Lock lock = {}) : ProfileLibrary(store::Tiers{&tier}, std::move(lock)) {}
    /// Only the first tier is written. REQUIRES: there is a first tier. All tiers must outlive the library.
    explicit ProfileLibrary(store::Tiers tiers, Lock lock = {}) : m_profiles(std::move(tiers)), m_lock(std::move(lock))
    {
    }

    /// Returns the joined profiles of all tiers; nullopt: no tier has one. Errors of the first tier: `corrupt` (the
    /// profile is damaged, was edited to an impossible value, or is stored under another key) and `stale` (a newer
    /// warmgraph wrote the profile). Errors of lower tiers are logged, and the profile of such a tier is not read
    /// again.
    [[nodiscard]] Result<std::optional<Profile>> find(const Digest& key) const;

    /// The profile after a merge, and the error of the profile that it replaced.
    struct MergeResult {
        Profile profile;
        std::optional<Error> replaced{}; ///< `corrupt`: a damaged profile was replaced
    };
    /// Joins `own` with the first tier's profile. Repeating this loses nothing and counts nothing twice. nullopt:
    /// another process is writing, and nothing was done. `stale`: a newer warmgraph wrote the stored profile, which
    /// stays unchanged.
    [[nodiscard]] Result<std::optional<MergeResult>> merge(const Profile& own) const;

private:
    Profiles m_profiles;
    Lock m_lock;
};

} // namespace warmgraph::profile
