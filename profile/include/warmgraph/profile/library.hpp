// Shape profiles in tiers: found, and joined with what is there.
//
// Thread-safe where the tiers are. A failure costs what would have been learnt, never a result: it is an Error for the caller
// to count.
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
    static constexpr store::Refusing k_refusing = store::Refusing::below_first;

    [[nodiscard]] static Digest key_of(const Profile& profile) { return profile.key; }
    [[nodiscard]] static Result<Profile> decode(ByteView bytes) { return profile::decode(bytes); }
    [[nodiscard]] static Result<Bytes> encode(const Profile& profile);
};
using Profiles = store::Artifacts<ProfileCodec>;

class Library {
public:
    /// Held while a file is read, joined and put again, so that no other writer's part gets lost. null: somebody else holds
    /// it. None is asked for where a tier has no locks.
    using Lock = std::function<Result<std::unique_ptr<FileLock>>(const store::ArtifactName&)>;

    /// `tier` must outlive the library.
    explicit Library(store::Tier& tier, Lock lock = {}) : Library(store::Tiers{&tier}, std::move(lock)) {}
    /// The first is written, those below it are only read. REQUIRES: there is a first. They outlive the library.
    explicit Library(store::Tiers tiers, Lock lock = {}) : m_profiles(std::move(tiers)), m_lock(std::move(lock)) {}

    /// What all tiers have, joined. nullopt: there is none. Of the first tier: `corrupt`: damaged, edited into what cannot
    /// be, or under another key's name; `stale`: a newer warmgraph's. In a tier below that is said in the log and not asked
    /// for again.
    [[nodiscard]] Result<std::optional<Profile>> find(const Digest& key) const;

    /// What a merge left in the tier, and what was wrong with what was there before.
    struct Merged {
        Profile profile;
        std::optional<Error> replaced{}; ///< `corrupt`: what was there is gone
    };
    /// Joins `own` with what the first tier has. Nothing is lost or counted twice, however often. nullopt: somebody else writes just now,
    /// and nothing was done. `stale`: a newer warmgraph's profile stays as it is.
    [[nodiscard]] Result<std::optional<Merged>> merge(const Profile& own) const;

private:
    Profiles m_profiles;
    Lock m_lock;
};

} // namespace warmgraph::profile
