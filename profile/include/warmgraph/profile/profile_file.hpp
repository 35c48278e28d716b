// A shape profile as it is stored: `.profile`, JSON that people read and edit (docs/profile.md).
#pragma once

#include <cstdint>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/profile/shapes.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::profile {

inline constexpr std::uint64_t k_profile_format = 1;
inline constexpr std::uint64_t k_profile_cap =
    store::row_of(store::ArtifactKind::profiles).most_bytes; ///< bytes of a file; more is not read

/// One line for each shape, the most frequent first. Of what does not fit into the cap, the least frequent shapes are left
/// out.
[[nodiscard]] std::string encode(const Profile& profile);
/// `corrupt` names what is wrong: no JSON, a member that is missing, of another kind or not known, a size or a count that
/// cannot be, more shapes, writers or arguments than there may be, a key that is not that of the rest. `stale`: another
/// format. There is no checksum: what is edited counts.
[[nodiscard]] Result<Profile> decode(ByteView bytes);

} // namespace warmgraph::profile
