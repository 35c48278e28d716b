// Waits for an event with a time limit. A driver's own wait lasts for ever if the work never ends.
#pragma once

#include <chrono>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph::backends {

/// Returns true when the event is done, false if `limit` passes first. Asks at least once. Sleeps 50 us between polls
/// at first, later 1 ms. Only outside a capture (Event::is_done).
[[nodiscard]] Result<bool> wait_for(Event& event, std::chrono::nanoseconds limit, Clock& clock = system_clock());

} // namespace warmgraph::backends
