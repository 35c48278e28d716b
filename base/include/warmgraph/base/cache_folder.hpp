// Where a cache lies.
#pragma once

#include <filesystem>

namespace warmgraph {

/// `given`, else $WARMGRAPH_CACHE_DIR, else .warmgraph_cache under the working directory; as absolute_folder() has it.
[[nodiscard]] std::filesystem::path cache_folder(std::filesystem::path given);

/// Absolute, without '.', '..' and a '/' at its end. A relative one stays relative where the working directory is gone.
[[nodiscard]] std::filesystem::path absolute_folder(const std::filesystem::path& folder);

} // namespace warmgraph
