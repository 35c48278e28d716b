// Shape profiles in a tier: found, and joined with what is there.
//
// Thread-safe where the tier is. A failure costs what would have been learnt, never a result: it is an Error for the caller
// to count.
#pragma once

#include <functional>
#include <memory>
#include <optional>

#include "warmgraph/base/file_system.hpp"
#include "warmgraph/profile/profile_file.hpp"
#include "warmgraph/store/tier.hpp"

namespace warmgraph::profile {

/// The profile's name in a tier.
[[nodiscard]] store::ArtifactName name_of(const Digest& key) noexcept;

class Library {
public:
    /// Held while a file is read, joined and put again, so that no other writer's part gets lost. null: somebody else holds
    /// it. None is asked for where a tier has no locks.
    using Lock = std::function<Result<std::unique_ptr<FileLock>>(const store::ArtifactName&)>;

    /// `tier` must outlive the library.
    explicit Library(store::Tier& tier, Lock lock = {}) : m_tier(tier), m_lock(std::move(lock)) {}

    /// nullopt: there is none. `corrupt`: damaged, edited into what cannot be, or under another key's name. `stale`: a newer
    /// warmgraph's.
    [[nodiscard]] Result<std::optional<Profile>> find(const Digest& key) const;

    /// What a merge left in the tier, and what was wrong with what was there before.
    struct Merged {
        Profile profile;
        std::optional<Error> replaced{}; ///< `corrupt`: what was there is gone
    };
    /// Joins `own` with what is there. Nothing is lost or counted twice, however often. nullopt: somebody else writes just now,
    /// and nothing was done. `stale`: a newer warmgraph's profile stays as it is.
    [[nodiscard]] Result<std::optional<Merged>> merge(const Profile& own) const;

private:
    store::Tier& m_tier;
    Lock m_lock;
};

} // namespace warmgraph::profile
