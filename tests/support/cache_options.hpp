// A cache of one process, whatever a launcher left in the environment.
#pragma once

#include <filesystem>
#include <string>

#include "warmgraph/warmgraph.hpp"

namespace warmgraph::test {

[[nodiscard]] inline CacheOptions cache_options(const std::string& model, const std::filesystem::path& folder,
                                                Policy policy = Policy::read_write)
{
    CacheOptions options;
    options.model = model;
    options.cache_dir = folder.string();
    options.policy = policy;
    options.world_size = 1;
    options.global_rank = 0;
    return options;
}

} // namespace warmgraph::test
