// A wait for an event that gives up: a driver's own wait would last for ever where the work never ends.
#pragma once

#include <chrono>

#include "warmgraph/backends/device.hpp"
#include "warmgraph/base/clock.hpp"

namespace warmgraph::backends {

/// True when the event is done, false when `limit` passed before. Asks at least once. Sleeps 50 us between questions at
/// first, 1 ms at most. Outside a capture only (Event::is_done).
[[nodiscard]] Result<bool> wait_for(Event& event, std::chrono::nanoseconds limit, Clock& clock = system_clock());

} // namespace warmgraph::backends
