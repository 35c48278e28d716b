// Watches the work that a function enqueues, to see if a capture of the function would hold all of it.
#pragma once

#include <optional>
#include <string>

namespace warmgraph::backends {

/// Watches the thread that created it, as long as it lives (DeviceRecording::watch_enqueues). Captured work and this
/// library's own transfers are ignored.
///
/// Members of the watch are the given stream and, as in stream capture, each stream that waits for an event that a
/// member recorded during the watch.
///
/// This base class sees nothing: it is for backends that cannot watch.
///
/// REQUIRES: destroyed by the thread that created it.
class EnqueueWatch {
public:
    virtual ~EnqueueWatch() = default;
    /// Returns the first call that a capture would not hold, as part of a sentence: "cuLaunchKernel in the legacy
    /// default stream", "cuMemcpyAsync in another stream (0x55d0c0)", "cuGraphLaunch of a graph", "cuStreamSynchronize,
    /// which synchronises". nullopt if there was no such call.
    [[nodiscard]] virtual std::optional<std::string> stray() const { return std::nullopt; }
    /// True if the thread depended on outside work: a value in memory, an external semaphore (signals count too), or an
    /// event that no member recorded during the watch.
    [[nodiscard]] virtual bool waits_outside() const { return false; }
};

} // namespace warmgraph::backends
