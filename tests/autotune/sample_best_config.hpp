// A tuned configuration in which every field is set.
#pragma once

#include "warmgraph/autotune/module_configs.hpp"

namespace warmgraph::autotune::test {

inline std::vector<Configuration> sample_candidates()
{
    return {{{"LANES", 8}, {"ROWS", 8}}, {{"LANES", 4}, {"ROWS", 16}}, {{"LANES", 16}, {"ROWS", 4}}};
}

inline BestConfig sample_best_config()
{
    BestConfig best;
    best.kernel = "matmul";
    best.key = sha256(as_bytes("key"));
    best.configs_hash = configs_hash(sample_candidates());
    best.config = sample_candidates()[1];
    best.took_ms = 1234.5;
    best.timings = {{sample_candidates()[0], 0.75, 7},
                    {sample_candidates()[1], 0.25, 7},
                    {sample_candidates()[2], 0, 0, "its results are not the default's: output 0: element 3 is nan"}};
    best.problem = {{"rows", 64}, {"in", 128}};
    best.device = {{"device.name", "a \"device\" \x01"}};
    best.driver = {{"driver.version", "3.1"}};
    best.written = "2026-11-24T00:30:00Z";
    return best;
}

/// A module with the configurations of two kernels.
inline ModuleConfigs sample_module()
{
    BestConfig other = sample_best_config();
    other.kernel = "matvec";
    other.key = sha256(as_bytes("other"));
    other.found_by = FoundBy::coordinate_descent;
    return {
        "model", sha256(as_bytes("module")), {{other.key, other}, {sample_best_config().key, sample_best_config()}}};
}

} // namespace warmgraph::autotune::test
