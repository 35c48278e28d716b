// Finds and removes images that no entry names.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "tiers/local/local_tier.hpp"

namespace warmgraph::store {

/// An image younger than this stays: a writer publishes images before the entry that names them.
inline constexpr std::chrono::hours k_image_grace{1};

/// Digests and sizes of the images that no entry outside `leaving` names and that were last published more than `grace`
/// ago. Empty while there are entries that cannot be read (entries of a newer warmgraph, or of another user).
[[nodiscard]] Result<std::vector<std::pair<Digest, std::uint64_t>>> unused_images(
    LocalTier& tier, std::chrono::seconds grace, const std::set<EntryKey>& leaving = {});

/// Removes the unused images.
[[nodiscard]] Result<Removal::Amount> sweep_images(LocalTier& tier, std::chrono::seconds grace);

} // namespace warmgraph::store
