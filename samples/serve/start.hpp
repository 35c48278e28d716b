// The start time of this process.
#pragma once

namespace serve {

/// Milliseconds since the process was started, to 10 ms. Throws std::runtime_error if /proc/self/stat is unreadable.
[[nodiscard]] double since_start_ms();

} // namespace serve
