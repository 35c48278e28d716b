// Whether an object that stands alone would be used here, judged by what it says of itself.
//
// A compiled program says in the index for which target it was compiled, and with which compiler. A tuned configuration is
// read for the device and the driver that it was found on. Nothing is asked of a profile: it fits everywhere.
#pragma once

#include <functional>
#include <string>

#include "warmgraph/autotune/best_config.hpp"
#include "warmgraph/backends/compiler.hpp"
#include "warmgraph/bundle/fit.hpp"
#include "warmgraph/precompile/compiled_program.hpp"

namespace warmgraph::bundle {

/// The device of a backend ("cuda") that is judged for; null: there is none here.
using DeviceOf = std::function<backends::Device*(const std::string& backend)>;

/// The member's own: `corrupt` and `untrusted` where it cannot be read or is not to be used.
[[nodiscard]] Result<Fit> judge_artifact(const Bundle& bundle, const Member& member, const DeviceOf& device_of);

/// Empty: it may be put into a folder here. Else why not. What fits after another driver is accepted is for its tuner to
/// judge.
[[nodiscard]] std::string why_not_here(const Bundle& bundle, const Member& member, const DeviceOf& device_of);

/// `here`: who compiles a program of these options here, and for what.
[[nodiscard]] Fit judge_compiled(const precompile::Ingredients& program, const backends::CompilerIdentity& here);
/// `here`: the device's facts. Another driver is `fits_after`: only the tuner that asks knows whether it takes one
/// (TuningDriver::any).
[[nodiscard]] Fit judge_tuned(const autotune::BestConfig& best, const Here& here);

/// The architecture that a compiled program or a tuned configuration is for: "sm_90"; "" where it says none, as a profile.
[[nodiscard]] Result<std::string> architecture_of(const Bundle& bundle, const Member& member);

/// One line for people: "matmul for sm_90, by NVRTC 13.0"; what cannot be read is an Error.
[[nodiscard]] Result<std::string> describe_artifact(const Bundle& bundle, const Member& member);

} // namespace warmgraph::bundle
