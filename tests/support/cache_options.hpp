// Options for a cache in one process. They do not depend on the environment of a launcher.
#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

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

/// The spec of a function with one input x and one output y, of `count` elements each.
[[nodiscard]] inline Spec x_to_y(DType dtype, std::int64_t count, std::vector<Program> code = {})
{
    Spec spec;
    spec.inputs = {input("x", dtype, {count})};
    spec.outputs = {output("y", dtype, {count})};
    spec.code = std::move(code);
    return spec;
}

} // namespace warmgraph::test
