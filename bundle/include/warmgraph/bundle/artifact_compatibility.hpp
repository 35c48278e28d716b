// Decides whether an artifact would be used on this machine, from the facts in it.
//
// The index has the facts of a compiled program, which name its target and compiler. A tuned configuration must be read
// to learn its device and driver. A profile fits everywhere.
#pragma once

#include <functional>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/bundle/compatibility.hpp"
#include "warmgraph/precompile/compiled_program.hpp"

namespace warmgraph::bundle {

/// Returns this machine's device of a backend ("cuda"); null if this machine has no such device.
using DeviceOf = std::function<backends::Device*(const std::string& backend)>;

/// Returns whether the artifact fits. Errors: `corrupt` or `untrusted` if the member cannot be read or must not be
/// used.
[[nodiscard]] Result<Compatibility> judge_artifact(const Bundle& bundle, const Member& member,
                                                   const DeviceOf& device_of);

/// Returns why the member may not be put into a folder on this machine; empty if it may. `fits_after` counts as a fit,
/// because the tuner decides whether to accept another driver.
[[nodiscard]] std::string why_not_here(const Bundle& bundle, const Member& member, const DeviceOf& device_of);

/// Judges a compiled program. `here`: this machine's compiler and target for the program's options.
[[nodiscard]] Compatibility judge_compiled(const precompile::Ingredients& program,
                                           const backends::CompilerIdentity& here);
/// Judges a tuned configuration. `here`: the device's facts. Another driver gives `fits_after`, because the tuner
/// decides (TuningDriver::any).
[[nodiscard]] Compatibility judge_tuned(const autotune::BestConfig& best, const MachineFacts& here);

/// Returns the architecture of a compiled program or a tuned configuration, such as "sm_90"; "" for an artifact without
/// an architecture (a profile).
[[nodiscard]] Result<std::string> architecture_of(const Bundle& bundle, const Member& member);

/// Returns a line for people, such as "matmul for sm_90, by NVRTC 13.0". Returns an Error if the member cannot be read.
[[nodiscard]] Result<std::string> describe_artifact(const Bundle& bundle, const Member& member);

} // namespace warmgraph::bundle
