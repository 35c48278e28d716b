// Decides whether an artifact would be used on this machine, from the facts in it.
//
// A compiled program's facts, in the index, name its target and compiler. A tuned configuration is read for its device
// and driver. A profile fits everywhere.
#pragma once

#include <functional>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/bundle/fit.hpp"
#include "warmgraph/precompile/compiled_program.hpp"

namespace warmgraph::bundle {

/// Returns this machine's device of a backend ("cuda"); null when it has none.
using DeviceOf = std::function<backends::Device*(const std::string& backend)>;

/// The error is the member's: `corrupt` or `untrusted` when it cannot be read or must not be used.
[[nodiscard]] Result<Fit> judge_artifact(const Bundle& bundle, const Member& member, const DeviceOf& device_of);

/// Returns an empty text when the member may be put into a folder here, else the reason. `fits_after` counts as a fit:
/// its tuner decides whether to accept another driver.
[[nodiscard]] std::string why_not_here(const Bundle& bundle, const Member& member, const DeviceOf& device_of);

/// `here`: this machine's compiler and target for these options.
[[nodiscard]] Fit judge_compiled(const precompile::Ingredients& program, const backends::CompilerIdentity& here);
/// `here`: the device's facts. Another driver gives `fits_after`: its tuner decides (TuningDriver::any).
[[nodiscard]] Fit judge_tuned(const autotune::BestConfig& best, const Here& here);

/// The architecture that a compiled program or a tuned configuration is for: "sm_90"; "" without one (a profile).
[[nodiscard]] Result<std::string> architecture_of(const Bundle& bundle, const Member& member);

/// A line for people: "matmul for sm_90, by NVRTC 13.0". An Error when the member cannot be read.
[[nodiscard]] Result<std::string> describe_artifact(const Bundle& bundle, const Member& member);

} // namespace warmgraph::bundle
