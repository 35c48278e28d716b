// What a request to clear means for the folder as it is now. Looks, and changes nothing.
#pragma once

#include "upkeep/image_sweep.hpp"

namespace warmgraph::store {

/// The functions that fit, and those that have the other entries of their pairs; none for a kind that keeps entries.
[[nodiscard]] Result<std::vector<FunctionKey>> functions_to_clear(LocalTier& tier, const ClearRequest& request);

/// All that would go.
[[nodiscard]] Result<Removal> plan_clear(LocalTier& tier, const ClearRequest& request);

/// Are images looked at? Not where names were chosen that fit nothing: then nothing at all is removed.
[[nodiscard]] inline bool clears_images(const ClearRequest& request, std::size_t functions) noexcept
{
    if (!request.kinds.contains(ArtifactKind::entries)) return request.kinds.contains(ArtifactKind::images);
    return functions > 0 || !request.chooses_functions();
}
[[nodiscard]] constexpr std::chrono::seconds image_grace(const ClearRequest& request) noexcept
{
    return request.kinds.contains(ArtifactKind::entries) ? std::chrono::seconds(0)
                                                         : std::chrono::seconds(k_image_grace);
}

/// Names and sizes of the library's own files in quarantine.
[[nodiscard]] Result<std::vector<std::pair<std::string, FileInfo>>> quarantined_files(const Disk& disk);

} // namespace warmgraph::store
