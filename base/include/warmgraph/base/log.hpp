// One spdlog logger named "warmgraph" on standard error. `WARMGRAPH_LOG` sets its level (trace, debug, info,
// warn, error, off); unset means warn, so that nothing is printed when nothing is wrong.
// Log lines: lower case, one line each. Secrets never reach it.
#pragma once

#include <functional>
#include <string>

#include <spdlog/logger.h>

namespace warmgraph {

/// Made on first use, thread-safe, valid until the process ends.
[[nodiscard]] spdlog::logger& log() noexcept;

/// Takes a line without prefix and without line end, in the thread that logs it, several at once.
using LogReceiver = std::function<void(spdlog::level::level_enum, const std::string&)>;

/// Lines go to `receiver` instead of standard error; to standard error again when it is empty. With a receiver and without
/// WARMGRAPH_LOG the level is info: who receives lines chooses among them. When this returns, no thread is in the receiver
/// before. What the receiver itself logs is dropped. Not from within a receiver (false, and nothing is changed).
[[nodiscard]] bool set_log_receiver(LogReceiver receiver);

/// Lines below `least` are not made any more: the receiver would drop them, and some take long to find out. Never more
/// than without it. Until it is called again, or another receiver is set. Thread-safe.
void limit_log(spdlog::level::level_enum least);

} // namespace warmgraph
