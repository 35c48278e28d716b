// The key of a tuned configuration. The key covers the inputs of the tuning, but no path, so that an installation can
// move.
#pragma once

#include <string>
#include <string_view>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/backends/device.hpp"
#include "warmgraph/tuning.hpp"

namespace warmgraph {

/// Returns the device's facts without driver_facts(). They include the device's name, because times depend on the
/// device more than code does.
[[nodiscard]] autotune::Facts device_facts(const backends::Device& device);
/// Returns the versions of driver and runtime.
[[nodiscard]] autotune::Facts driver_facts(const backends::Device& device);

/// Returns the key of a kernel. It covers the name, the source without comments, the headers' contents, the options
/// without folders, the problem and the device.
/// `tag`: CacheOptions::cache_key_tag; without one, the key is the same as before there were tags.
[[nodiscard]] Digest tuned_key(const TunableKernel& kernel, const autotune::Facts& device, std::string_view tag = {});
[[nodiscard]] Digest module_key(const std::string& name, std::string_view code, const autotune::Facts& device,
                                std::string_view tag = {});

} // namespace warmgraph
