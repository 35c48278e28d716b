// The start time of this process.
#pragma once

namespace serve {

/// Milliseconds since the process was started, in steps of the kernel's 10 ms. Throws std::runtime_error when
/// /proc/self/stat cannot be read.
[[nodiscard]] double since_start_ms();

} // namespace serve
