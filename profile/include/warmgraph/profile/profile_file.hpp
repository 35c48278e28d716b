// The file format of a shape profile: `.profile`, JSON that people read and edit (docs/profile.md).
#pragma once

#include <cstdint>
#include <string>

#include "warmgraph/base/bytes.hpp"
#include "warmgraph/profile/shapes.hpp"
#include "warmgraph/store/artifact_kind.hpp"

namespace warmgraph::profile {

inline constexpr std::uint64_t k_profile_format = 1;
inline constexpr std::uint64_t k_profile_cap =
    store::row_of(store::ArtifactKind::profiles).most_bytes; ///< limit in bytes; a larger file is not read

/// Writes one line for each shape, the most frequent shape first. Leaves out the rarest shapes if the file would exceed
/// the cap.
[[nodiscard]] std::string encode(const Profile& profile);
/// Reads a profile. `corrupt`: not JSON; a missing or unknown member, or one of the wrong type; an impossible size or
/// count; too many shapes, writers or arguments; or a key that does not fit the other members. `stale`: another format
/// version. There is no checksum, because people may edit the file.
[[nodiscard]] Result<Profile> decode(ByteView bytes);

} // namespace warmgraph::profile
