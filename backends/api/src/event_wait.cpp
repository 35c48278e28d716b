#include "warmgraph/backends/event_wait.hpp"

#include <algorithm>
#include <thread>

namespace warmgraph::backends {

Result<bool> wait_for(Event& event, std::chrono::nanoseconds limit, Clock& clock)
{
    constexpr int k_yields = 16; // do not sleep for work that is nearly done
    constexpr std::chrono::nanoseconds k_shortest = std::chrono::microseconds{50};
    constexpr std::chrono::nanoseconds k_longest = std::chrono::milliseconds{1};
    const auto started = clock.steady();
    auto pause = k_shortest;
    for (int asked = 0;; ++asked) {
        auto done = event.is_done();
        if (!done || *done) return done;
        const auto passed = clock.steady() - started;
        if (passed >= limit) return false;
        if (asked < k_yields) {
            std::this_thread::yield();
            continue;
        }
        clock.sleep_for(std::min<std::chrono::nanoseconds>(pause, limit - passed));
        pause = std::min(2 * pause, k_longest);
    }
}

} // namespace warmgraph::backends
