// The path of the cache folder.
#pragma once

#include <filesystem>

namespace warmgraph {

/// Returns the absolute path of `given`, else of $WARMGRAPH_CACHE_DIR, else of .warmgraph_cache.
[[nodiscard]] std::filesystem::path cache_folder(std::filesystem::path given);

/// Removes '.', '..' and a '/' at the end. The result stays relative if the working directory no longer exists.
[[nodiscard]] std::filesystem::path absolute_folder(const std::filesystem::path& folder);

} // namespace warmgraph
