// One spdlog logger named "warmgraph" on standard error. `WARMGRAPH_LOG` sets its level (trace, debug, info,
// warn, error, off); the default is warn, so that nothing is printed while nothing is wrong.
// Log lines: lower case, one line each. Secrets never reach the log.
#pragma once

#include <functional>
#include <string>

#include <spdlog/logger.h>

namespace warmgraph {

/// The logger is made on first use, thread-safe, and valid until the process ends.
[[nodiscard]] spdlog::logger& log() noexcept;

/// Takes one line without prefix and line end. It runs in the thread that logs; several threads may call it at once.
using LogReceiver = std::function<void(spdlog::level::level_enum, const std::string&)>;

/// Sends lines to `receiver` instead of standard error; an empty `receiver` restores standard error. With a receiver
/// and without WARMGRAPH_LOG the level is info. After this returns, no thread runs the previous receiver. Lines that a
/// receiver logs are dropped. Returns false, and changes nothing, when a receiver calls it.
[[nodiscard]] bool set_log_receiver(LogReceiver receiver);

/// Suppresses lines below `least`, which the receiver would drop: building some of these lines takes time. The limit
/// never enables more lines, and holds until the next call or until another receiver is set. Thread-safe.
void limit_log(spdlog::level::level_enum least);

} // namespace warmgraph
