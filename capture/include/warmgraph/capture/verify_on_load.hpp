// CacheOptions::verify_on_load: a restored graph is held to the function itself before it is used.
#pragma once

#include "warmgraph/base/phases.hpp"
#include "warmgraph/capture/run.hpp"
#include "warmgraph/replay/executable.hpp"

namespace warmgraph {

/// Runs the function and the restored graph on copies of the call's memory, which must be idle, and compares within the
/// function's own spread. verification_failed: they differ. Any other code: it could not be found out.
/// The executable is left bound to released memory: its next launch rebinds.
[[nodiscard]] Result<void> verify_restored(const Subject& subject, const Frame& frame, replay::Executable& executable,
                                           Phases& phases);

} // namespace warmgraph
