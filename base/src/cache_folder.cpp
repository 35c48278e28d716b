#include "warmgraph/base/cache_folder.hpp"

#include <system_error>

#include "warmgraph/base/process.hpp"

namespace warmgraph {

std::filesystem::path cache_folder(std::filesystem::path given)
{
    if (given.empty()) given = environment("WARMGRAPH_CACHE_DIR").value_or("");
    return absolute_folder(given.empty() ? ".warmgraph_cache" : given);
}

std::filesystem::path absolute_folder(const std::filesystem::path& folder)
{
    std::error_code gone;
    const auto absolute = std::filesystem::absolute(folder, gone);
    const auto normal = (gone ? folder : absolute).lexically_normal();
    return normal.has_filename() ? normal : normal.parent_path();
}

} // namespace warmgraph
