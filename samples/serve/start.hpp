// When this process began.
#pragma once

namespace serve {

/// Milliseconds since the process was started, to the 10 ms that the kernel counts in. std::runtime_error where
/// /proc/self/stat cannot be read.
[[nodiscard]] double since_start_ms();

} // namespace serve
