// What names a tuned configuration: what it depends on, and nothing that moves with an installation.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// The device's own facts, its name too: times depend on more than what code depends on. Without driver_facts().
[[nodiscard]] autotune::Facts device_facts(const backends::Device& device);
/// Versions of driver and runtime.
[[nodiscard]] autotune::Facts driver_facts(const backends::Device& device);

/// Of name, source without comments, headers' contents, options without their folders, problem and device.
[[nodiscard]] Digest tuned_key(const TunableKernel& kernel, const autotune::Facts& device);
[[nodiscard]] Digest module_key(const std::string& name, std::string_view code, const autotune::Facts& device);

} // namespace warmgraph
