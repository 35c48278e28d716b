// What a request to clear means for the folder as it is now. Looks, and changes nothing.
#pragma once

#include "upkeep/image_sweep.hpp"

namespace warmgraph::store {

/// The functions that fit; none for a kind that keeps entries.
[[nodiscard]] Result<std::vector<FunctionKey>> functions_to_clear(const Disk& disk, const ClearRequest& request);

/// All that would go.
[[nodiscard]] Result<Removal> plan_clear(LocalTier& tier, const ClearRequest& request);

[[nodiscard]] constexpr bool clears_entries(ClearKind kind) noexcept
{
    return kind == ClearKind::entries || kind == ClearKind::all;
}
[[nodiscard]] constexpr bool clears_quarantine(ClearKind kind) noexcept
{
    return kind == ClearKind::quarantine || kind == ClearKind::all;
}
/// Of the artifacts.
[[nodiscard]] constexpr bool clears(ClearKind asked, Kind kind) noexcept
{
    return asked == ClearKind::all || asked == clear_kind(kind);
}
/// Are images looked at? Not where names were chosen that fit nothing: then nothing at all is removed.
[[nodiscard]] inline bool clears_images(const ClearRequest& request, std::size_t functions) noexcept
{
    return request.kind == ClearKind::images ||
           (clears_entries(request.kind) && (functions > 0 || !request.chooses_functions()));
}
[[nodiscard]] constexpr std::chrono::seconds image_grace(ClearKind kind) noexcept
{
    return kind == ClearKind::images ? std::chrono::seconds(k_image_grace) : std::chrono::seconds(0);
}

/// Names and sizes of the library's own files in quarantine.
[[nodiscard]] Result<std::vector<std::pair<std::string, FileInfo>>> quarantined_files(const Disk& disk);

} // namespace warmgraph::store
