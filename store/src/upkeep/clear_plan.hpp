// Plans a clear() request for the folder's current contents. Changes nothing.
#pragma once

#include "upkeep/image_sweep.hpp"

namespace warmgraph::store {

/// Returns the functions that fit the request, and the functions that have the other entries of their pairs. Empty for
/// a kind without functions.
[[nodiscard]] Result<std::vector<FunctionKey>> functions_to_clear(LocalTier& tier, const ClearRequest& request);

/// Returns everything that clear() would remove.
[[nodiscard]] Result<Removal> plan_clear(LocalTier& tier, const ClearRequest& request);

/// Whether the request clears images. False when names were chosen that fit no function: then nothing is removed.
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
