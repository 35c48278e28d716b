// The key of a tuned configuration. It covers the tuning's inputs, but no path, so that an installation can move.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// The device's facts, including its name, because times depend on more than the code does. Without driver_facts().
[[nodiscard]] autotune::Facts device_facts(const backends::Device& device);
/// The versions of driver and runtime.
[[nodiscard]] autotune::Facts driver_facts(const backends::Device& device);

/// Covers name, source without comments, the headers' contents, options without folders, problem and device.
[[nodiscard]] Digest tuned_key(const TunableKernel& kernel, const autotune::Facts& device);
[[nodiscard]] Digest module_key(const std::string& name, std::string_view code, const autotune::Facts& device);

} // namespace warmgraph
