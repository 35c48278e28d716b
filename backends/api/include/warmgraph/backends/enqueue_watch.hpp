// What a function enqueues while it runs: whether a capture of it would hold all of it.
#pragma once

#include <optional>
#include <string>

namespace warmgraph::backends {

/// Watches the thread that made it, for as long as it lives (Recording::watch_enqueues). Work that is captured does not
/// count, and neither do this library's own transfers.
///
/// Members are the given stream and, by the rule of stream capture, each stream that was made to wait for an event that
/// was recorded in a member meanwhile.
///
/// This class sees nothing: it is for backends that cannot watch.
///
/// REQUIRES: destroyed by the thread that made it.
class EnqueueWatch {
public:
    virtual ~EnqueueWatch() = default;
    /// The first call that a capture would not hold, as part of a sentence: "cuLaunchKernel in the legacy default
    /// stream", "cuMemcpyAsync in another stream (0x55d0c0)", "cuGraphLaunch of a graph", "cuStreamSynchronize, which
    /// synchronises". nullopt where there was none.
    [[nodiscard]] virtual std::optional<std::string> stray() const { return std::nullopt; }
    /// Whether it waited for somebody else: for a value in memory, for an external semaphore (signalling one counts),
    /// or for an event that was not recorded in a member meanwhile.
    [[nodiscard]] virtual bool waits_outside() const { return false; }
};

} // namespace warmgraph::backends
