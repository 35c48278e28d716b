// One spdlog logger named "warmgraph" on standard error. `WARMGRAPH_LOG` sets its level (trace, debug, info,
// warn, error, off); unset means warn, so that nothing is printed when nothing is wrong.
// Log lines: lower case, one line each. Secrets never reach it.
#pragma once

#include <spdlog/logger.h>

namespace warmgraph {

/// Made on first use, thread-safe, valid until the process ends.
[[nodiscard]] spdlog::logger& log() noexcept;

} // namespace warmgraph
